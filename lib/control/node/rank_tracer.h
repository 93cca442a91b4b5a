// The guardian's part of a trace of this node: the memory in which its ranks write
// (observe/trace_memory.h), and what the launcher did with them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "node/realtime_history.h"
#include "observe/rank_progress.h"
#include "observe/trace_memory.h"
#include "rendezvous/types.h"

namespace fleet {

// Not thread-safe.
class RankTracer {
 public:
  struct Target {
    int local_rank = 0;
    int rank = 0;
    pid_t pid = -1;
    bool of_engine = false;  // it counts its steps, or will
    ProgressReader* progress = nullptr;
  };
  // Bytes of a piece: below what a message may carry.
  static constexpr size_t kPieceBytes = size_t{1} << 20;

  void begin_generation(int generation, int64_t now_ns);
  // Kept for the next trace: the last ones. local_rank -1: of the node.
  void note(LauncherEvent::Kind kind, int local_rank, int rank, int number, int64_t at_ns);
  // Call it every second.
  void sample_clocks() { realtime_.sample_clocks(); }
  // Its trace stays readable.
  void on_rank_ended(pid_t pid);

  // targets: the ranks that run, for BEGIN.
  TraceAnswer answer(const TraceRequest& request, const std::vector<Target>& targets);

 private:
  struct Traced {
    TracedRank rank;
    std::unique_ptr<TraceReader> memory;  // null: state NONE
  };
  void begin(int64_t steps, const std::vector<Target>& targets);
  void update(Traced* traced) const;

  std::vector<Traced> ranks_;
  std::deque<LauncherEvent> events_;
  size_t before_ = 0;  // events before the trace began
  int generation_ = 0;
  RealtimeHistory realtime_;
};

}  // namespace fleet
