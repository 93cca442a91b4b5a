// How each rank spends its steps: computing, waiting for data, waiting for other ranks. For
// metrics.jsonl and for the launcher.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "data/pipeline.h"
#include "observe/event_file.h"
#include "observe/meter.h"
#include "observe/rank_progress.h"
#include "train/rank_coordinator.h"

namespace fleet {

// Collects the times since the previous line. Every rank makes the same calls.
class RankTimes {
 public:
  // Collective: `meter` is this rank's, waited_ns: PeerWaitTimer::total_ns(). Call it every
  // few steps.
  void collect(const StepMeter& meter, int64_t waited_ns, RankCoordinator& control);
  // The line "ranks" with seconds per step, by rank; nullopt if less than a few seconds have passed
  // since the last one, or nothing was collected. `all`: however little time has passed.
  std::optional<EventLine> take_line(int64_t step, double now, bool all);

 private:
  struct Sums {
    double steps = 0, batch = 0, data = 0, waited = 0;
  };
  Sums before_;              // this rank's, at the last collect()
  std::vector<Sums> ranks_;  // since the last line
  double written_ = 0;
};

// Adds up what a rank publishes for its launcher. For the training thread.
class StepTotalsMeter {
 public:
  // host_waits: whether the host waits for collectives; else the device does.
  explicit StepTotalsMeter(bool host_waits) : host_waits_(host_waits) {}
  // Call before the ranks agree on a step, and after its work. step: trained so far.
  void step_begins();
  const StepTotals& step_done(int64_t step, const StepMeter& meter, const data::Batch& batch,
                              const data::ReaderWork& work);

 private:
  const bool host_waits_;
  StepTotals totals_;
  int64_t waited_before_ = 0;              // this thread's, before the current step
  std::array<int64_t, 8> recent_waits_{};  // this thread's, in the last steps
};

}  // namespace fleet
