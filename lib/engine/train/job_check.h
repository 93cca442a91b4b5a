// Checks a job before it starts: builds what its start builds, with the same functions, but without
// data, weights, kernels and other ranks.
#pragma once

#include <functional>
#include <string>

#include "train/session.h"

namespace fleet {

// Checks a job that trains or evaluates. Takes the size of the images from the job's settings, not
// from options.image. Builds the whole Program of that rank, the schedule, and the tracker of
// evaluations. Returns what could not be checked, and why, as a clause; "" if only the data were
// not checked. Errors of Trainer: kUsage, kUnsupported; of read_weights() if
// checkpoint.weights_skip names parameters that only a file has, or if the model's folder has
// weights: their headers. inspect: called with that Program; not if it cannot be built because only
// the data tell the size of images.
std::string check_training(const Job& job, const ProgramOptions& options,
                           const std::function<void(const Program&)>& inspect = {});

// Checks a job that only evaluates images with its network: a prediction, or an export. Its result
// and errors are as above.
std::string check_network_only(const Job& job, const ProgramOptions& options);

}  // namespace fleet
