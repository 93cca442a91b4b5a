// Per-rank states (Var::per_rank), the variables that rank 0 broadcasts, and sync runs that bring
// ranks together.
#pragma once

#include <vector>

#include "exec/executor.h"

namespace fleet {

// The number of this rank, and of all ranks.
struct JobRank {
  int rank = 0, world = 1;
};

// The states that each rank saves itself.
std::vector<VarId> rank_states(const Program& program);
// Whether some variable is saved by the rank that owns it (Var::owner).
bool is_sharded(const Program& program);
// Whether ranks other than 0 write parts of a checkpoint.
bool saves_in_parts(const Program& program);
// Whether this rank is such an owner.
bool owns_variables(const Program& program, const JobRank& own);
// Whether parameters are; evaluation then gathers them too.
bool shards_parameters(const Program& program);
// Whether this rank saves the variable: its owner, rank 0, or every rank its own (Var::per_rank).
bool saves(const JobRank& own, const Var& var);
// The variables that rank 0 broadcasts at the start: everything saved except per-rank states and
// what has an owner.
std::vector<VarId> shared_vars(const Program& program);
// The variables that rank 0 broadcasts before evaluation and saving: the statistics of the model
// (states that section `forward` writes, except per-rank ones and what has an owner) and their
// averages.
std::vector<VarId> shared_statistics(const Program& program, SectionId forward);
// Whether ranks drift apart between two averages: true if some operation runs in a sync.
bool ranks_diverge(const Program& program);
// Whether the parameters do: localsgd, but not Reduce mode, where only states of owners differ.
bool weights_drift(const Program& program);
// Brings ranks that have drifted apart together before evaluation and saving, if the Program has
// operations for it. All ranks make the same calls; not thread-safe.
class RankSync {
 public:
  // steps: trained so far; the ranks are equal at that point. The executor must outlive this.
  RankSync(Executor& executor, int64_t steps);
  // Runs the sections that hold in a sync (StepInfo::sync), unless no step was trained since ranks
  // were last together. Returns after the host has issued the work, like Executor::run().
  void run(int64_t steps);

 private:
  Executor& executor_;
  bool wanted_;           // some operation runs in a sync
  int64_t synced_steps_;  // step at which ranks were last together
};

}  // namespace fleet
