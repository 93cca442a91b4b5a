// Detects ranks whose parameters silently differ from the others': bad memory, a device that
// computes wrong results, or machines whose kernels differ.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "train/rank_coordinator.h"
#include "train/rank_state.h"

namespace fleet {

// A hash of the value of each variable, in order. Waits for the device.
std::vector<uint64_t> hash_values(Executor& executor, const Device& device,
                                  const std::vector<VarId>& vars);

// Why the ranks are compared besides at regular times.
struct Suspicion {
  std::string what = {};  // "the loss of rank 1 is not finite"
  int rank = -1;          // the rank that it points to; -1: none
};

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
  // message. suspicion: the same on all ranks; of two ranks, its rank counts as the minority.
  void compare(int64_t steps, const Suspicion& suspicion = {});
  // Collective. Call before a value that is not finite ends the job: damaged memory of one rank may
  // be the cause. compare(), unless ranks may differ for another reason: between two averages, or
  // because only some of them left out an update (`apart`, FiniteCheck::ranks_apart()).
  void compare_before_end(int64_t steps, const Suspicion& suspicion, bool apart);

 private:
  Executor& executor_;
  const Device& device_;
  RankCoordinator& control_;
  const JobRank rank_;
  const bool drifts_;
  std::vector<VarId> parameters_;
};

}  // namespace fleet
