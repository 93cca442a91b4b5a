// Whether gradients merged over micro-batches equal those of whole batches, step by step.
#pragma once

#include <cstdint>
#include <string>

#include "base/config.h"
#include "data/sampler.h"

namespace fleet {

// The batches of an epoch, over all ranks.
struct EpochBatches {
  int64_t samples = 0;  // in the training data
  int64_t global_batch = 1;
  data::Tail tail = data::Tail::kPad;
};

// Why an update of k micro-batches, each with a k-th of a batch, would train on other samples or
// with another learning rate than the update of a whole batch; "" if it does not. schedule: the
// job's section learning_rate. epochs: the job's. Evaluates the schedule at every step.
std::string micro_batch_obstacle(const EpochBatches& whole, int64_t k, const Settings& schedule,
                                 int64_t epochs);

}  // namespace fleet
