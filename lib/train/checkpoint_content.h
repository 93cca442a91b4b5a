// Which variables each file of a checkpoint holds.
#pragma once

#include <string>

#include "exec/executor.h"
#include "train/safetensors.h"

namespace fleet {

enum class CheckpointFile {
  kModel,      // parameters and running statistics
  kAverage,    // their averages (optim/ema.h), under the same names
  kOptimizer,  // the optimizer's states
  kRank,       // states that each rank has a value of its own of (Var::per_rank)
};

// Of a variable that is saved.
CheckpointFile file_of(const Program& program, const Var& var);

// What that file holds, as it lies in the executor's memory. copied: false: where the host can read
// that memory it is not copied, and changes with the next run. Waits for the steps so far.
TensorFile gather(Executor& executor, CheckpointFile which, bool copied);
// Compares every variable of the program that belongs into this file with what it holds, but for
// loss scaling's and the count of averages that only one of them has. kUsage naming `path` and the
// first that does not fit.
void check_fit(const Program& program, const TensorFile& file, CheckpointFile which,
               const std::string& path);
// Drops what the file has of loss scaling and of averages and the program has not. Returns a line
// about loss scaling that differs: what the program has and the file has not stays as it is; ""
// where both are alike.
std::string drop_others(TensorFile& file, const Program& program);
// Whether the program keeps averages of its weights.
bool has_averages(const Program& program);
// Writes all of the file to the executor.
void scatter(const TensorFile& file, CheckpointFile which, Executor& executor);

}  // namespace fleet
