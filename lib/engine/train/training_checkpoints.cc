#include "train/training_checkpoints.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <filesystem>
#include <limits>

#include "base/clock.h"
#include "base/log.h"
#include "base/running_clock.h"
#include "base/text.h"

namespace fleet {

// The reason why a checkpoint was not saved, if the disk or another rank caused it; else rethrows.
static std::string saving_failure(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kIo && error.code() != ErrorCode::kPeerLost) throw;
    return error.what();
  } catch (const std::filesystem::filesystem_error& error) {
    return error.what();
  }
}

TrainingCheckpoints::TrainingCheckpoints(std::string root, const Parts& parts, JobRank own,
                                         Communicator* communicator)
    : root_(std::move(root)), parts_(parts), own_(own) {
  std::unique_ptr<RankCoordinator> of_saver;  // the saver's thread takes its own turns
  if (saves_in_parts(parts.runner.executor().program())) {
    of_saver =
        std::make_unique<RankCoordinator>(communicator, RankCoordinator::Actions::kUnlimited);
  }
  saver_ = std::make_unique<CheckpointSaver>(root_, parts.runner.executor(), own,
                                             std::move(of_saver), parts.runner.table_files());
}

std::string TrainingCheckpoints::newest() {
  if (parts_.policy.saving()) poll();
  const auto newest = latest_checkpoint(root_);
  return newest ? "the newest good checkpoint is " + *newest : "there is no checkpoint yet";
}

void TrainingCheckpoints::end_for_nan(const std::string& what, int64_t step,
                                      const BadUpdates* bad) {
  finish(Patience::kLimited);  // so that all ranks name the same checkpoint
  if (parts_.divergence) {
    parts_.divergence->compare_before_end(parts_.runner.position().step,
                                          {what, bad ? bad->suspect() : -1},
                                          parts_.runner.finite_check().ranks_apart());
  }
  throw NotFiniteError(what, "step " + std::to_string(step),
                       "lower learning_rate.base, or look at the data; " + newest());
}

// A checkpoint with bad values must not take the place of a good one.
void TrainingCheckpoints::log_unsaved() {
  const int64_t step = parts_.runner.position().step;
  const std::string what = "'" + unsaved_ + "' is not finite";
  if (parts_.runner.finite_check().on_nan() == OnNan::kStop) end_for_nan(what, step);
  if (is_leader()) spdlog::warn("step {} is not saved: {}; {}", step, what, newest());
}

void TrainingCheckpoints::save(bool at_end) {
  auto& [runner, policy, tracker, report, divergence] = parts_;
  const TimeAccumulator::Scope piece(report.times().saving);
  if (!finish(at_end ? Patience::kUnlimited : Patience::kLimited)) return skip();
  const TrainingPosition& position = runner.position();
  const BestValue best = tracker.record().kept;
  if (policy.is_saved(position.step, best)) return;
  report.clear_bar();
  runner.sync_ranks(StepRunner::SyncFor::kCheckpoint);
  if (divergence)
    divergence->compare(position.step);  // never replace a good checkpoint by a bad one
  unsaved_ = runner.finite_check().bad_state();
  if (!unsaved_.empty()) return log_unsaved();
  const Keep keep = policy.begin(position.step, best);
  if (!at_end) return saver_->begin(position, keep);
  saver_->begin(position, keep, CheckpointSaver::Values::kInPlace);
  finish(Patience::kUnlimited);
}

// Training continues after a failure: the next save may succeed.
void TrainingCheckpoints::poll() {
  const auto outcome = saver_->take();
  if (!outcome) return;
  parts_.report.clear_bar();
  failure_.clear();
  if (!outcome->failure) {
    if (is_leader()) spdlog::info("saved {}", outcome->folder);
    return parts_.report.launcher().saved(outcome->step);
  }
  failure_ = saving_failure(outcome->failure);
  spdlog::warn("step {} is not saved: {}; training continues, and the next checkpoint may succeed",
               outcome->step, failure_);
}

// Waits for this rank's save until that time; false: it still runs.
bool TrainingCheckpoints::wait_until(double until) {
  while (!saver_->wait_for(std::chrono::milliseconds(200))) {
    parts_.report.log_failures();
    if (running_seconds() >= until) return false;
  }
  return true;
}

bool TrainingCheckpoints::finish(Patience patience) {
  constexpr double kRound = 1, kSecondsBetweenLines = 30;
  CheckpointPolicy& policy = parts_.policy;
  if (!policy.saving()) return true;
  const TimeAccumulator::Scope piece(parts_.report.times().saving);
  const double begun = running_seconds();
  const double end = patience == Patience::kUnlimited ? std::numeric_limits<double>::infinity()
                                                      : begun + policy.patience();
  double logged = begun;
  std::array<double, 3> state;  // ranks that failed, that still save, that will not wait longer
  // In rounds: a save may take longer than a collective may wait.
  do {
    const bool done = wait_until(std::min(end, running_seconds() + kRound));
    poll();
    const double now = running_seconds();
    if (!done && now - logged >= kSecondsBetweenLines) {
      logged = now;
      parts_.report.clear_bar();
      spdlog::warn("step {} is still being saved after {}: does {} answer? Training waits",
                   policy.saved_step(), format_duration(now - begun), root_);
    }
    state = {failure_.empty() ? 0.0 : 1.0, done ? 0.0 : 1.0, now >= end ? 1.0 : 0.0};
    parts_.runner.step_control().sum(state);
  } while (state[1] > 0 && state[2] == 0);
  if (state[1] > 0) {
    policy.hang();
    return false;
  }
  set_best(policy.end(state[0] > 0, parts_.tracker.record().kept));
  return true;
}

void TrainingCheckpoints::set_best(const BestValue& best) {
  EvaluationTracker& tracker = parts_.tracker;
  if (best == tracker.record().kept) return;
  tracker.restore_best(best);
  if (tracker.wanted()) parts_.runner.position().evaluations = tracker.record();
}

// Training continues while the disk does not answer, as it does while the disk is full.
void TrainingCheckpoints::skip() {
  const int64_t step = parts_.runner.position().step;
  set_best(parts_.policy.skip(step, parts_.tracker.record().kept));
  if (!is_leader()) return;
  parts_.report.clear_bar();
  spdlog::warn(
      "step {} is not saved: step {} is still being saved, and {} does not answer; "
      "training continues, and the next checkpoint may succeed",
      step, parts_.policy.saved_step(), root_);
}

void TrainingCheckpoints::check_last() {
  const int64_t step = parts_.runner.position().step;
  if (!unsaved_.empty()) end_for_nan("'" + unsaved_ + "' is not finite", step);
  if (failure_.empty()) return;
  throw Error(ErrorCode::kIo, "the last checkpoint could not be saved: " + failure_,
              "step " + std::to_string(step), newest());
}

}  // namespace fleet
