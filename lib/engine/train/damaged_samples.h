// Damaged samples over all ranks.
#pragma once

#include "data/pipeline.h"
#include "train/rank_coordinator.h"

namespace fleet {

// The number of distinct damaged samples in the batches that all ranks have received. A sample
// counts once even if several ranks read it, so the number does not depend on the number of ranks.
// All ranks must call it.
int64_t count_damaged(const data::InputPipeline& pipeline, RankCoordinator& control);

}  // namespace fleet
