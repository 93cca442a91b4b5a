// Probes whether every node can connect to every other, whether large packets arrive, and how far
// the clocks differ.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "transport/event_loop.h"
#include "transport/loop_descriptor.h"
#include "transport/tcp_listener.h"

namespace fleet {

// The result of a connection to another node.
enum class ReachResult {
  kOk,
  kRefused,         // the host answers, but nothing listens or a firewall rejects
  kTimeout,         // no answer: a firewall drops packets, or the host is down
  kUnreachable,     // no route, or a router rejects
  kUnexpectedPeer,  // another service answers
  kStalled,         // connects, but large packets do not arrive
  kFailed,          // other errors, see detail
};

struct Reach {
  int node_rank = 0;  // the node that was tried
  ReachResult result = ReachResult::kOk;
  std::string detail;
  double clock_offset = 0;  // seconds by which its clock is ahead, if kOk
  double round_trip = 0;    // seconds; the offset is accurate to half of it
};

// Answers the probes of other nodes on its own thread until it is destroyed.
class ReachServer {
 public:
  // Listens on `port` of `address`, which may be held (reserved_ports.h). `token` identifies this
  // job. Throws kIo if it cannot listen.
  ReachServer(const std::string& address, int port, uint64_t token, int node_rank);
  ~ReachServer() { accept_.stop(); }
  ReachServer(const ReachServer&) = delete;

 private:
  struct Client {
    Client(EventLoop& loop, UniqueFd fd) : socket(loop, std::move(fd)), limit(loop) {}
    LoopDescriptor socket;
    LoopTimer limit;
    size_t got = 0;
  };
  using Clients = std::list<Client>;
  void greet(UniqueFd fd);
  void wait_for(Clients::iterator client);

  const uint64_t token_;
  const int node_rank_;
  AcceptLoop accept_;
  Clients clients_;
};

struct ReachTarget {
  int node_rank = 0;
  std::string address;  // numeric
  int port = 0;
};
// Tries every target, with at most `step_timeout` seconds per step. One result per target, in the
// same order.
std::vector<Reach> reach_all(const std::vector<ReachTarget>& targets, uint64_t token,
                             double step_timeout = 3);

}  // namespace fleet
