#include "train/averaged_statistics.h"

#include <algorithm>

#include "optim/ema.h"
#include "optim/swa.h"

namespace fleet {

// 0: none.
static int64_t batches_to_take(const Job& job, int64_t of_epoch) {
  const int64_t wanted = job.train.integer("swa.statistics_batches");
  if (wanted < 0 || job.train.integer("swa.from_epoch") == 0) return 0;
  return wanted == 0 ? of_epoch : std::min(wanted, of_epoch);
}

AveragedStatistics::AveragedStatistics(const Job& job, StepRunner& runner,
                                       data::InputPipeline& data, Callbacks callbacks)
    : runner_(runner),
      data_(data),
      callbacks_(std::move(callbacks)),
      batches_(batches_to_take(job, data.batches())),
      averages_(averaged_statistics(runner.executor().program())) {
  needed_ = batches_ > 0 && !averages_.empty();
}

void AveragedStatistics::update() {
  const TrainingPosition at = runner_.position();
  if (!needed_ || step_ == at.step) return;
  Executor& executor = runner_.executor();
  const Program& program = executor.program();
  if (executor.values<int64_t>(program.find(kEmaUpdates))[0] == 0) return;
  step_ = at.step;
  std::vector<std::vector<float>> before;
  for (const VarId average : averages_) before.push_back(executor.values<float>(average));
  if (run_batches()) {
    average_over_ranks();
  } else {  // a rank may have taken a placeholder for a batch that it could not read
    for (size_t i = 0; i < averages_.size(); ++i) executor.write(averages_[i], before[i]);
  }
  // Also at the end of an epoch: the epoch of the pass may have batches left.
  if (at.batch > 0) data_.start_epoch(at.epoch, at.batch, at.step);
}

// False: the ranks ended it.
bool AveragedStatistics::run_batches() {
  Executor& executor = runner_.executor();
  const int64_t none = 0;
  executor.write(executor.program().find(kStatisticsBatches), std::span(&none, 1));
  data_.start_epoch(0);  // the same batches whenever it is done
  for (int64_t number = 0;; ++number) {
    const data::Batch* batch = number < batches_ ? callbacks_.next_batch() : nullptr;
    // Without a batch it is asked all the same: a rank may have failed at the last one.
    if (!callbacks_.agree_on_step(batch != nullptr)) return false;
    if (!batch) break;
    runner_.take_statistics(*batch, number);
    callbacks_.batch_done();
  }
  executor.synchronize();
  return true;
}

// A rank has statistics of its own batches.
void AveragedStatistics::average_over_ranks() {
  Executor& executor = runner_.executor();
  double ranks = 1;
  runner_.control().sum({&ranks, 1});
  if (ranks == 1) return;
  for (const VarId average : averages_) {
    const std::vector<float> own = executor.values<float>(average);
    std::vector<double> sums(own.begin(), own.end());
    runner_.control().sum(sums);
    std::vector<float> means(own.size());
    std::ranges::transform(sums, means.begin(),
                           [&](double sum) { return static_cast<float>(sum / ranks); });
    executor.write(average, means);
  }
}

}  // namespace fleet
