// Saves a checkpoint of a job of one rank.
#pragma once

#include <string>

#include "train/checkpoint.h"

namespace fleet {

inline std::string save_checkpoint(const std::string& root, const TrainingPosition& position,
                                   Executor& executor, int keep) {
  RankCoordinator alone(nullptr);
  return save_on_all_ranks(root, position, executor, keep, {}, alone);
}

}  // namespace fleet
