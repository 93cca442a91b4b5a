// The weight of each class in the loss (train.class_weights).
#pragma once

#include <vector>

#include "data/source.h"
#include "train/job.h"

namespace fleet {

// Expands "train.class_weights": "balanced", or a list with one number for each class.
void expand_class_weights(ConfigTree* tree);
bool weighs_classes(const Job& job);
// Checks the settings as class_weights() does, without the data.
void check_class_weights(const Job& job);
// Weights by label. balanced: with n samples and k classes in `train`, a class with n_c samples
// gets n / (k * n_c), like scikit-learn's compute_class_weight; 0 without samples. Samples that the
// loss ignores do not count. kUsage if the number of weights differs from the model's classes, a
// weight is below 0 or not finite, or all are 0.
std::vector<float> class_weights(const Job& job, const data::Source& train);

}  // namespace fleet
