// Losses of weighted items whose divisor is a number of the whole update.
#pragma once

#include <string>

#include "models/task.h"

namespace fleet {

// The loss of a training step: sum(weight * loss) / the feed `divisor` ("denominator",
// "sample_denominator"), so that the mean over ranks, merged steps and micro-batches is the loss of
// one large batch. losses, weight: float32, of one shape.
VarId divided_loss(TaskBuilder& task, VarId losses, VarId weight, const std::string& divisor);

}  // namespace fleet
