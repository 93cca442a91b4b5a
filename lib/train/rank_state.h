// States that each rank has a value of its own of (Var::per_rank), and runs that bring ranks
// together: which variables rank 0 gives to all, which it leaves alone.
#pragma once

#include <vector>

#include "exec/executor.h"

namespace fleet {

// Which rank this is, of how many.
struct JobRank {
  int rank = 0, world = 1;
};

// Those that each rank saves itself.
std::vector<VarId> rank_states(const Program& program);
// What rank 0 gives to all at the start: all that is saved but the states of each rank.
std::vector<VarId> shared_vars(const Program& program);
// What rank 0 gives to all before evaluation and saving: the statistics of the model, which are the
// states that section `forward` writes, but for those of each rank, and the averages of those.
std::vector<VarId> shared_statistics(const Program& program, SectionId forward);
// Whether ranks drift apart between two averages: some operation runs in a sync.
bool drifts_apart(const Program& program);
// Brings ranks that have drifted apart together before evaluation and saving, where the Program has
// operations for it. All ranks call it alike; not thread-safe.
class RankSync {
 public:
  // steps: trained so far; ranks are together after them. The executor must outlive this.
  RankSync(Executor& executor, int64_t steps);
  // Runs the sections that hold in a sync (StepInfo::sync), unless no step was trained since ranks
  // were together. Returns after the host has issued it, as Executor::run() does.
  void run(int64_t steps);

 private:
  Executor& executor_;
  bool wanted_;           // some operation runs in a sync
  int64_t synced_steps_;  // after which ranks were together
};

}  // namespace fleet
