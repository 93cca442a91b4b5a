// A process with some of the nodes of a simulated job: real clients, one connection each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "rendezvous/security.h"
#include "rendezvous/types.h"

namespace fleet {

inline constexpr char kSimulatedKey[] = "ids";  // what every rank gets from the Store

struct SimulatedJob {
  int ranks = 1;
  int ranks_per_node = 8;  // the last node has what is left

  int nnodes() const { return (ranks + ranks_per_node - 1) / ranks_per_node; }
  int ranks_of(int node) const;
  JobSpec spec() const;  // with its list of nodes
};

// What a process measured.
struct NodesReport {
  int64_t failed = 0;                // nodes or calls that did not end as they should
  std::string why;                   // of one of them
  std::vector<int64_t> nanoseconds;  // joining: when each node was assigned, by the monotonic clock
  int64_t cpu_ns = 0;                // used since the process began
};

// Forks: to be made before the process has threads. Its calls throw kInternal where the process is
// gone.
class NodesProcess {
 public:
  // Nodes [first, last) of the job.
  NodesProcess(const SimulatedJob& job, int first, int last);
  ~NodesProcess();  // ends the process
  NodesProcess(NodesProcess&&) = default;

  void join(const std::string& address, const Security& security) { ask('j', address, security); }
  // Every rank gets this key from the Store at `address`.
  void get(const std::string& address, const Security& security) { ask('g', address, security); }
  void look() { ask('l', {}, {}); }    // only reports
  void finish() { ask('f', {}, {}); }  // until every node has its verdict
  NodesReport report();                // of what was asked last; waits for it

 private:
  void ask(char what, const std::string& text, const Security& security);

  UniqueFd socket_;
  int pid_ = -1;
};

}  // namespace fleet
