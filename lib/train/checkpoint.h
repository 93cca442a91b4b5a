// Checkpoints: one folder a step, "<root>/step_00000120", with model.safetensors (parameters and
// running statistics under the model's names), optimizer.safetensors (the optimizer's states) and
// state.json (where training is).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "exec/executor.h"

namespace fleet {

// Where training is. A run resumed from it goes on with batch `batch` of epoch `epoch`.
struct TrainingPosition {
  int64_t step = 0;  // training steps done
  int64_t epoch = 0;
  int64_t batch = 0;  // batches of this epoch done
  uint64_t seed = 0;
  int64_t global_batch = 0;  // samples a step, over all ranks
  std::string model;
};

// Writes a checkpoint of every parameter and state, aside and renamed when all of it is on the
// disk; then removes all but the newest `keep` (0: keeps all). Returns its folder. kIo.
std::string save_checkpoint(const std::string& root, const TrainingPosition& position,
                            Executor& executor, int keep);

// The newest complete checkpoint below root, if there is one.
std::optional<std::string> latest_checkpoint(const std::string& root);

// Renames a root that holds checkpoints to "<root>.1" (or the next free number), so that a new run
// does not mix with an earlier one's; returns where they are then.
std::optional<std::string> set_checkpoints_aside(const std::string& root);

// Reads a checkpoint into the executor. kUsage where it is truncated, of another model, or lacks
// something: nothing is changed then. Only the states of loss scaling may differ, as where float16
// goes on in float32: those it lacks keep their values, those the program has not are left out.
// note: a line about that, "" where nothing differs.
TrainingPosition load_checkpoint(const std::string& folder, const std::string& model,
                                 Executor& executor, std::string* note = nullptr);

// Reads parameters and running statistics only (a safetensors file under the model's names), to
// start from.
void load_weights(const std::string& path, Executor& executor);

}  // namespace fleet
