// Whether every node can connect to every other, whether large packets get through, and how far
// their clocks are apart.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/thread.h"

namespace fleet {

// What a connection to another node came to.
enum class ReachResult {
  kOk,
  kRefused,      // the host is there, nobody listens, or a firewall says no
  kTimeout,      // nothing came back: a firewall drops packets, or the host is down
  kUnreachable,  // no route, or a router says no
  kStranger,     // something else answers there
  kStalled,      // it connects, but large packets do not arrive
  kFailed,       // anything else, see detail
};

struct Reach {
  int node_rank = 0;  // the node that was tried
  ReachResult result = ReachResult::kOk;
  std::string detail;
  double clock_offset = 0;  // seconds that its clock is ahead, where kOk
  double round_trip = 0;    // seconds it took to ask: the offset is right to half of it
};

// Answers the probes of other nodes, on a thread of its own, until it is destroyed.
class ReachServer {
 public:
  // Listens on `port` of `address`, which may be held (held_ports.h). `token`: tells this job from
  // others. kIo where it cannot listen.
  ReachServer(const std::string& address, int port, uint64_t token, int node_rank);
  ~ReachServer();
  ReachServer(const ReachServer&) = delete;

 private:
  void serve();
  uint64_t token_;
  int node_rank_;
  UniqueFd listener_, stop_;
  Thread thread_;  // last: uses the rest
};

struct ReachTarget {
  int node_rank = 0;
  std::string address;  // numeric
  int port = 0;
};
// Tries every target, at most `patience` seconds for each of its steps. One result a target, in
// their order.
std::vector<Reach> reach_all(const std::vector<ReachTarget>& targets, uint64_t token,
                             double patience = 3);

}  // namespace fleet
