// Damaged samples over all ranks.
#pragma once

#include "data/pipeline.h"
#include "train/control.h"

namespace fleet {

// How many different samples were damaged in the batches that the ranks have got: each once,
// however many ranks met it, so that the number does not depend on theirs. All ranks call it alike.
int64_t count_damaged(const data::InputPipeline& pipeline, Control& control);

}  // namespace fleet
