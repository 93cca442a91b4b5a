// A guardian's part in traces (fleetrun trace): events in its ranks' lives, and their memory.
#pragma once

#include <cstdint>
#include <vector>

#include "node/guarded_rank.h"
#include "node/progress_collector.h"
#include "node/rank_tracer.h"
#include "transport/control_messages.h"

namespace fleet {

// Times are of monotonic_ns(). Not thread-safe.
class GuardianTrace {
 public:
  void begin_generation(int generation);
  // Call it every second.
  void sample_clocks() { tracer_.sample_clocks(); }
  // rank: nullptr for an event of the node. number: as in LauncherEvent.
  void note(LauncherEvent::Kind kind, const GuardedRank* rank, int number, int64_t at_ns);
  // Notes each rank's first output and first step, once.
  void note_first_signs(std::vector<GuardedRank>& ranks, const ProgressCollector& progress);
  // status: of waitpid(). Notes the end; the rank's trace stays readable.
  void on_rank_ended(const GuardedRank& rank, int status, int64_t at_ns);
  TraceAnswer answer(const TraceRequest& request, const std::vector<GuardedRank>& ranks);

 private:
  RankTracer tracer_;
};

}  // namespace fleet
