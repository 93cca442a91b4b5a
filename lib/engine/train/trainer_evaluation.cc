// Trainer's evaluations.
#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "train/trainer.h"

namespace fleet {

static constexpr std::chrono::seconds kWriteBeforeMemory{2};

void Trainer::evaluate(int64_t epoch) {
  if (!data_->test() || evaluated_step_ >= runner_->position().step) return;
  if (runner_->apart() && (met_stop_ || !meet())) return;
  std::optional<TimeAccumulator::Scope> piece(std::in_place, report_->times().evaluating);
  const double begun = monotonic_seconds();
  statistics_->update();
  data_->test()->start_epoch(0);
  const bool apart = runner_->apart();
  bool interrupted = false;  // on this rank; those that run apart learn it at the end
  const auto next = [&]() -> const data::Batch* {
    interrupted |= apart && options_.stop && options_.stop->load() != 0;
    if (interrupted) return nullptr;
    const data::Batch* batch = next_batch(*data_->test());
    interrupted |= apart && failure_;
    return interrupted ? nullptr : batch;
  };
  const auto evaluation = fleet::evaluate(
      *runner_, {.next_batch = next,
                 .source = &data_->test()->source(),
                 .agree_on_step =
                     [&](bool works) { return apart || agree_on_step(works, runner_->control()); },
                 .batch_done = [this] { report_->launcher().tick(); }});
  if (!evaluation || (apart && gave_up(interrupted))) return void(met_stop_ = true);
  result_.evaluation = evaluation->sums;
  evaluated_step_ = runner_->position().step;
  const bool best = !evaluates_only_ && follow(evaluation->sums);
  report_->evaluated(*evaluation, epoch, monotonic_seconds() - begun, &data_->test()->source());
  // A process that takes this place does not evaluate again, so the lines are written first, unless
  // the disk does not answer.
  if (memories_) report_->files().wait_for(kWriteBeforeMemory);
  remember();
  piece.reset();
  if (best) checkpoints_->save();  // only if this step is not saved yet
}

// Whether a trainer has interrupted an evaluation of trainers that run apart.
bool Trainer::gave_up(bool own) {
  const double stop = own && options_.stop ? options_.stop->load() : 0;
  const std::array values = {own ? 1.0 : 0.0, stop};
  bool any = false;
  for (const auto& rank : runner_->control().by_rank(values)) {
    any |= rank[0] != 0;
    if (result_.stopped_by == 0) result_.stopped_by = static_cast<int>(rank[1]);
  }
  return any;
}

// Passes an evaluation to the schedule, the best checkpoint and early stopping. Returns whether it
// is the best so far.
bool Trainer::follow(const MetricSums& evaluated) {
  TrainingPosition& at = runner_->position();
  const bool counts = evaluations_->counts(at);
  if (counts && runner_->schedule().observed_step() != at.step) {
    const std::string line = runner_->observe(evaluated);
    if (!line.empty() && is_leader()) {
      report_->clear_bar();
      spdlog::info("{}", line);
    }
  }
  const auto values = evaluated.values();
  const bool best = tracker_->observe(at.step, {values.begin(), values.end()}, counts);
  if (tracker_->wanted()) at.evaluations = tracker_->record();
  if (is_leader() && tracker_->should_stop()) {
    report_->clear_bar();
    spdlog::info("training ends early: {}", tracker_->why_it_stops());
  }
  return best;
}

}  // namespace fleet
