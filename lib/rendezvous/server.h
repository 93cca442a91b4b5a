// Node 0's side of the rendezvous: membership, verdict and key-value store of one job, served over
// gRPC: to other hosts by TCP, to this host's own processes by a Unix socket.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "rendezvous/connection_budget.h"
#include "rendezvous/security.h"
#include "rendezvous/types.h"

namespace fleet {

struct RendezvousServerOptions {
  JobSpec job;                     // what the nodes must agree with
  std::string host = "127.0.0.1";  // address to listen on; "0.0.0.0" or "::" for all
  int port = 0;                    // 0: a free one
  bool network = true;             // false: no TCP; a job of one node needs none
  // Where to make a Unix socket for this user's processes here; "": an abstract one; nullopt: none.
  std::optional<std::string> local_folder;
  std::chrono::milliseconds timeout{300'000};  // --rdzv_timeout: all nodes must have come
  // A node that vanishes is lost, to all, within this time: --heartbeat_timeout (more nodes:
  // beats.h).
  std::chrono::milliseconds heartbeat_timeout{3'000};
  std::chrono::milliseconds first_progress{2'000};
  std::chrono::milliseconds progress_every{10'000};
  std::optional<Inheritance> from;  // of a host that was lost
  Security security;
  // A connection that has not shown its certificate, or begun to speak HTTP/2, by then is closed.
  std::chrono::milliseconds greeting{30'000};
  // How many connections a node of this job has, about: its launcher's and its ranks'.
  int connections_per_node = 16;
  // Of strangers; default: by the job's size.
  std::optional<ConnectionBudget::Limits> strangers;
  // Whether what a client sends is watched where it has shown no certificate (default: where there
  // is no TLS). Not so in a simulation.
  std::optional<bool> screened;
};

class RendezvousServer {
 public:
  // Listens. kUsage where the port is taken, naming it, --rdzv_port, and the job that holds it
  // where that is a rendezvous too; kIo where the address cannot be listened on.
  explicit RendezvousServer(RendezvousServerOptions options);
  ~RendezvousServer();  // stop()
  RendezvousServer(const RendezvousServer&) = delete;

  int port() const;  // 0: no TCP
  // Where clients on this host reach it: its Unix socket, else "127.0.0.1:PORT" where it listens on
  // everything.
  std::string local_address() const;
  // Where other hosts reach it, "" where they do not.
  std::string network_address() const;
  // Whether it listens on anything but loopback: the launcher then warns that the connection is
  // open.
  bool open_to_network() const;
  // Ends the service. Nodes that are still there and have no verdict hear that node 0 was lost;
  // those with one are given up to `drain` to hear it and leave; a node that is silent is not
  // waited for. Idempotent; any thread.
  void stop(std::chrono::milliseconds drain = std::chrono::milliseconds(15'000));

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fleet
