// How each rank spends its steps, for metrics.jsonl: computing, waiting for data, waiting for other
// ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "observe/event_file.h"
#include "observe/meter.h"
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

}  // namespace fleet
