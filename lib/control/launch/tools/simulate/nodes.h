// A process that runs some nodes of a simulated job: real clients, one connection each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "rendezvous/types.h"
#include "transport/security.h"

namespace fleet {

inline constexpr char kSimulatedKey[] = "ids";  // the key that every rank gets from the Store

struct SimulatedJob {
  int ranks = 1;
  int ranks_per_node = 8;  // the last node may have fewer

  int nnodes() const { return (ranks + ranks_per_node - 1) / ranks_per_node; }
  int ranks_of(int node) const;
  JobSpec spec() const;  // includes the list of nodes
};

// Measurements of a process.
struct NodesReport {
  int64_t failed = 0;                // nodes or calls that failed
  std::string why;                   // reason of one failure
  std::vector<int64_t> nanoseconds;  // join: when each node was assigned, monotonic clock
  int64_t cpu_ns = 0;                // CPU time since the process started
  int64_t late_ns = 0;               // how late its ticks were at most (TickLateness)
};

// Forks in its constructor, so create it before threads exist. Calls throw kInternal if the process
// has ended.
class NodesProcess {
 public:
  // Nodes [first, last) of the job.
  NodesProcess(const SimulatedJob& job, const Security& security, int first, int last);
  ~NodesProcess();  // kills the process
  NodesProcess(NodesProcess&&) = default;

  void join(const std::string& address) { send("join " + address); }
  void get() { send("get"); }        // after join(): every rank gets kSimulatedKey from the Store
  void sample() { send("sample"); }  // requests a report only
  void finish() { send("finish"); }  // waits until every node has its verdict
  NodesReport report();              // waits for the reply to the last request
  int pid() const { return pid_; }

 private:
  void send(const std::string& command);

  UniqueFd socket_;
  int pid_ = -1;
};

}  // namespace fleet
