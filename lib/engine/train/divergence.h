// Detects ranks whose parameters silently differ from the others': bad memory, a device that
// computes wrong results, or machines whose kernels differ.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/executor.h"
#include "train/rank_coordinator.h"
#include "train/rank_state.h"

namespace fleet {

// A hash of the value of each variable, in order. Waits for the device.
std::vector<uint64_t> hash_values(Executor& executor, const Device& device,
                                  const std::vector<VarId>& vars);

class DivergenceCheck {
 public:
  // The arguments must outlive this object.
  DivergenceCheck(Executor& executor, const Device& device, RankCoordinator& control, JobRank rank);

  // Whether the strategy lets ranks differ between two averages: then call compare() only right
  // after an average.
  bool drifts() const { return drifts_; }
  // Collective. Hashes the parameters that must be equal on all ranks (16 bytes per rank are
  // exchanged); if the hashes differ, compares each parameter. Throws kInternal on the ranks in the
  // minority, naming them and the first parameter, and kPeerLost with the same text on the others;
  // without a majority (two ranks, halves) kInternal on all. steps: trained so far, for the
  // message.
  void compare(int64_t steps);

 private:
  Executor& executor_;
  const Device& device_;
  RankCoordinator& control_;
  const JobRank rank_;
  const bool drifts_;
  std::vector<VarId> parameters_;
};

}  // namespace fleet
