// The folders of a run's checkpoints: their files, and which of them are kept.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/checkpoint.h"
#include "train/checkpoint_state.h"

namespace fleet {

inline constexpr char kModelFile[] = "model.safetensors";
inline constexpr char kOptimizerFile[] = "optimizer.safetensors";
inline constexpr char kAverageFile[] = "ema.safetensors";

// "step_00000120"
std::string name_of_step(int64_t step);
// Complete checkpoints, oldest first.
std::vector<std::string> all_checkpoints(const std::string& root);
// Tables of parameter servers may be the changes since those of another checkpoint: DamagedFile if
// that is missing.
void check_needed(const std::string& folder, const StateFacts& facts);
// Removes the older checkpoints of steps up to `step`, except those that `keep` names, and those
// that the kept ones need.
void remove_old_checkpoints(const std::string& root, int64_t step, const Keep& keep);

}  // namespace fleet
