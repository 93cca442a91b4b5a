// Node 0's side of the rendezvous: membership, verdict and key-value store of one job, served over
// gRPC: to other hosts by TCP, to processes of this host by a Unix socket.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "rendezvous/types.h"
#include "transport/client_budgets.h"
#include "transport/security.h"

namespace fleet {

class JobHost;

struct RendezvousServerOptions {
  JobSpec job;                     // the nodes must agree with it
  std::string host = "127.0.0.1";  // address to listen on; "0.0.0.0" or "::" for all
  int port = 0;                    // 0: any free port
  bool network = true;             // false: no TCP; a job of one node needs none
  // Folder of the Unix socket for this user's processes; "": an abstract socket; nullopt: none.
  std::optional<std::string> local_folder;
  std::chrono::milliseconds timeout{300'000};  // --rdzv_timeout: for all nodes to join
  // The job notices a vanished node within this time: --heartbeat_timeout (for large jobs see
  // JobTimes).
  std::chrono::milliseconds heartbeat_timeout{15'000};
  std::chrono::milliseconds first_progress{2'000};
  std::chrono::milliseconds progress_every{10'000};
  std::optional<FailoverState> from;  // state of a host that was lost
  Security security;
  // A connection that has not shown its certificate, or begun to speak HTTP/2, within this time is
  // closed.
  std::chrono::milliseconds handshake_timeout{30'000};
  // Approximate number of connections per node: its launcher's and its ranks'.
  int connections_per_node = 16;
  // Limits for unauthenticated peers; default: by the job's size.
  std::optional<ConnectionBudget::Limits> unauthenticated_limits;
  // By how many bytes this process may grow before a server without TLS closes its port; default:
  // by the job's size.
  std::optional<int64_t> max_growth;
};

class RendezvousServer {
 public:
  // Listens. Throws kUsage if the port is taken, naming it, --rdzv_port, and the job that holds it
  // if that is a rendezvous too, or if only root may use it; kIo if it cannot listen on the
  // address.
  explicit RendezvousServer(RendezvousServerOptions options);
  // The same, but returns nullptr if the port is taken.
  static std::unique_ptr<RendezvousServer> make_if_free(RendezvousServerOptions options);
  ~RendezvousServer();  // stop()
  RendezvousServer(const RendezvousServer&) = delete;

  // For the node in this process.
  std::shared_ptr<JobHost> host() const;
  int port() const;  // 0: no TCP
  // Its address for clients on this host: its Unix socket, or "127.0.0.1:PORT" if it listens on all
  // addresses.
  std::string local_address() const;
  // Its address for other hosts; "" if they cannot reach it.
  std::string network_address() const;
  // Whether it listens on more than loopback: the launcher then warns that the connection is open.
  bool open_to_network() const;
  // Ends the service. Connected nodes without a verdict learn that node 0 was lost; those with one
  // get up to `drain` to receive it and leave. Silent nodes are not awaited. Idempotent; callable
  // from any thread.
  void stop(std::chrono::milliseconds drain = std::chrono::milliseconds(15'000));

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fleet
