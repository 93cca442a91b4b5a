// How much each class counts in the loss (train.class_weights).
#pragma once

#include <vector>

#include "data/source.h"
#include "train/job.h"

namespace fleet {

// "train.class_weights": "balanced", or a list with one number for each class.
void name_class_weights(ConfigTree* tree);
bool weighs_classes(const Job& job);
// By label. balanced: of `train`'s n samples of k classes a class of n_c has n / (k * n_c), as
// scikit-learn's compute_class_weight has it; 0 where it has none. Samples that the loss leaves out
// do not count. kUsage where they do not fit the model's classes, one is below 0 or not finite, or
// all of them are 0.
std::vector<float> class_weights(const Job& job, const data::Source& train);

}  // namespace fleet
