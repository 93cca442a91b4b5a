// The variables in each file of a checkpoint.
#pragma once

#include <functional>
#include <string>

#include "exec/executor.h"
#include "train/safetensors.h"

namespace fleet {

enum class CheckpointFile {
  kModel,      // parameters and running statistics
  kAverage,    // their averages (optim/ema.h), under the same names
  kOptimizer,  // the optimizer's states
  kRank,       // states with a separate value on each rank (Var::per_rank)
  kShard,      // what one rank owns of the first three (Var::owner), until they are put together
};

// The file of a saved variable.
CheckpointFile file_of(const Program& program, const Var& var);

// Collects the variables of that file from the executor: for the first three, those without an
// owner; of kShard, those that `rank`, this one, owns. copied: if false, memory that the host can
// read is not copied, and changes with the next run. Waits for the steps so far.
TensorFile gather(Executor& executor, CheckpointFile which, bool copied, int rank = 0);
// Whether it is a state that exists only in runs with loss scaling; the counters exist only if the
// scale changes. They are not learnt values, so a run may have other ones than its checkpoint.
bool is_of_loss_scaling(const std::string& name);
// Compares every variable of the program that belongs into this file with the content of the file.
// States of loss scaling, the count of averages and merged gradients of kOptimizer
// (passes/gradients.h) may be missing on either side, and those of may_lack (null: none) in the
// file. kUsage naming `path` and the first mismatch.
void check_fit(const Program& program, const TensorFile& file, CheckpointFile which,
               const std::string& path,
               const std::function<bool(const std::string& state)>& may_lack = {});
// Drops states of loss scaling, averages and merged gradients that the optimizer's states or the
// rank's part have and the program has not in that file. Returns a line about differences of loss
// scaling (values that only the program has stay unchanged) and about merged gradients that are not
// 0, "" if none.
std::string drop_others(TensorFile& states, TensorFile& part, const Program& program);
// Whether the program keeps averages of its weights.
bool has_averages(const Program& program);
// Adds what a shard (kShard) holds of this file.
void add_shard(const TensorFile& shard, CheckpointFile which, TensorFile* file);
// Writes all values of the file to the executor, except those that other ranks hold.
void scatter(const TensorFile& file, CheckpointFile which, Executor& executor);

}  // namespace fleet
