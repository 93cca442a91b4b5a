// Keys of a job that follow from the record of its weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/job.h"

namespace fleet {

struct DerivedKeys {
  std::vector<std::string> lines;     // each key that was set, its value and its origin
  std::vector<std::string> warnings;  // about values that are guessed
};

// Sets the keys of a job of images that it leaves out and that follow from checkpoint.weights: the
// network, what its images were like (data.mean, data.std, data.interpolation), and, if the job
// names no network, sizes, classes, augmentation, a part for validation and a recipe. Nothing for a
// job without checkpoint.weights. kUsage naming the weights if they do not tell which network they
// are of, or if it is not known, with the nearest names; errors of find_record().
DerivedKeys derive_from_weights(ConfigTree* tree);

// The record of the weights of this job, as JSON on one line; "" if the model is not a network of
// images. image: its channels, height and width.
std::string own_record(const Job& job, const std::vector<int64_t>& image);

}  // namespace fleet
