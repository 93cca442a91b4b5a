// The averages of weights that evaluations use: train.ema and train.swa.
#pragma once

#include <optional>
#include <string>

#include "optim/schedule.h"
#include "train/session.h"

namespace fleet {

// The key that asks for averages of the weights; "": none does.
std::string key_of_averages(const Job& job);

// Whether evaluations use averages: by such a key, or by the optimizer.
bool evaluates_averages(const Job& job);

// Appends them to a Program with its updates. kUsage naming the key if a strategy leaves ranks
// without a common value of each weight, or if both keys ask for them.
void average_weights(const Job& job, int rank, BuiltProgram* built);

// The learning rate from train.swa.from_epoch on; nullopt: the schedule's. steps: in an epoch.
std::optional<RateEnding> swa_rate(const Job& job, int64_t steps);

// The steps after which train.swa averages the weights.
class SwaSteps {
 public:
  SwaSteps() = default;
  // batches: in an epoch.
  SwaSteps(const Job& job, const Program& program, int64_t batches);
  // StepInfo::flags of the step of this batch, all counted from 0.
  uint64_t flags(int64_t epoch, int64_t batch, int64_t step) const;

 private:
  int64_t from_ = 0, every_ = 0, batches_ = 1;
  FlagId flag_ = kNoFlag;
};

}  // namespace fleet
