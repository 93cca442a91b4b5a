// Outputs "logits" of classifiers, for tasks that use them.
#pragma once

#include "models/task.h"

namespace fleet {

// kUsage, naming the model, unless its "logits" are float32 [batch, num_classes].
void check_class_scores(const TaskBuilder& task);

}  // namespace fleet
