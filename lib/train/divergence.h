// Finds ranks whose parameters are silently no longer those of the others: memory that went bad, a
// device that computes wrong, machines whose kernels differ.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/executor.h"
#include "train/control.h"
#include "train/rank_state.h"

namespace fleet {

// A hash of each of the variables' values, in their order. Waits for the device.
std::vector<uint64_t> hash_values(Executor& executor, const Device& device,
                                  const std::vector<VarId>& vars);

class DivergenceCheck {
 public:
  // What it is given must outlive it.
  DivergenceCheck(Executor& executor, const Device& device, Control& control, JobRank rank);

  // Whether ranks differ between two averages by what the strategy is: compare() is for when they
  // are together.
  bool drifts() const { return drifts_; }
  // Collective. Hashes the parameters that all ranks have alike (16 bytes a rank travel), and where
  // they differ those of each. Throws on the ranks in the minority kInternal that names them and
  // the first parameter, and on the others kPeerLost with the same words; where there is no
  // majority (two ranks, halves) it is kInternal on all. steps: trained so far, for the message.
  void compare(int64_t steps);

 private:
  Executor& executor_;
  const Device& device_;
  Control& control_;
  const JobRank rank_;
  const bool drifts_;
  std::vector<VarId> parameters_;
};

}  // namespace fleet
