// Weights that another program trained.
#pragma once

#include <map>
#include <string>

#include "train/job.h"

namespace fleet {

// A warning with values if the job leaves data.mean or data.std at their defaults, although a file
// of weights is not of a run of fleetrun and the job's model is one of torchvision's: those weights
// expect normalised pixels. "" otherwise. metadata: the file's.
std::string missing_normalization(const Job& job, const std::string& path,
                                  const std::map<std::string, std::string>& metadata);

}  // namespace fleet
