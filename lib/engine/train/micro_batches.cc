#include "train/micro_batches.h"

#include <cmath>

#include "optim/schedule.h"

namespace fleet {

static int64_t batches_of(const EpochBatches& epoch, int64_t global_batch) {
  return data::Sampler({.samples = epoch.samples,
                        .batch = global_batch,
                        .shuffle = false,
                        .tail = epoch.tail})
      .batches();
}

std::string micro_batch_obstacle(const EpochBatches& whole, int64_t k, const Settings& schedule,
                                 int64_t epochs) {
  constexpr int64_t kMaxSteps = 10'000'000;  // about a second
  const int64_t batches = batches_of(whole, whole.global_batch);
  if (batches_of(whole, whole.global_batch / k) != k * batches) {
    return "an epoch of " + std::to_string(whole.samples) + " samples would not have " +
           std::to_string(k) + " times as many batches";
  }
  if (batches > kMaxSteps / epochs) return "the job has too many steps to compare learning rates";
  const Schedule rates(schedule, batches, epochs, whole.global_batch);
  const Schedule of_parts(schedule, k * batches, epochs, whole.global_batch);
  for (int64_t step = 0; step < batches * epochs; ++step) {
    // The last micro-batch of an update brings the rate.
    const double rate = rates.learning_rate(step), part = of_parts.learning_rate(k * step + k - 1);
    if (std::abs(rate - part) > 1e-9 * std::abs(rate)) {
      return "the learning rate changes within an epoch";
    }
  }
  return "";
}

}  // namespace fleet
