// Saving of checkpoints in a Trainer.
#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <filesystem>
#include <limits>

#include "base/clock.h"
#include "base/log.h"
#include "train/trainer.h"

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

// An end for a failure of the data: saves first, so that a later start can continue the training.
// Without a sample since the start there is nothing to save: a prediction would take the untrained
// weights of this run for the newest.
void Trainer::end_for_failure() {
  auto trained = static_cast<double>(trained_samples_);
  runner_->control().sum({&trained, 1});
  if (trained > 0 &&
      (job_.checkpoint.boolean("at_end") || job_.checkpoint.integer("every_steps") > 0 ||
       job_.checkpoint.integer("every_epochs") > 0)) {
    save(true);
  }
  finish_save(Patience::kUnlimited);
  const double failed = failure_ ? 1 : 0;
  const auto failures = runner_->control().by_rank({&failed, 1});
  if (failure_) std::rethrow_exception(failure_);
  const auto first =
      std::find_if(failures.begin(), failures.end(), [](const auto& rank) { return rank[0] != 0; });
  throw Error(ErrorCode::kPeerLost, "cannot continue",
              "rank " + std::to_string(first - failures.begin()), "see the message of that rank");
}

// Saves after a signal; sbatch sends one before the time limit of a job, for example.
void Trainer::save_if_asked() {
  if (!std::exchange(save_asked_, false)) return;
  runner_->executor().synchronize();
  if (const auto bad = check_for_nan()) act_on(*bad);
  save();
  meter_.start();
}

std::string Trainer::newest_checkpoint() {
  if (saving_) poll_save();
  const auto newest = latest_checkpoint(checkpoints());
  return newest ? "the newest good checkpoint is " + *newest : "there is no checkpoint yet";
}

// A checkpoint with bad values must not take the place of a good one.
void Trainer::log_unsaved() {
  const std::string what = "'" + unsaved_ + "' is not finite";
  if (runner_->finite_check().on_nan() == OnNan::kStop) end_for_nan(what, position_.step);
  if (is_leader()) {
    spdlog::warn("step {} is not saved: {}; {}", position_.step, what, newest_checkpoint());
  }
}

void Trainer::save(bool at_end) {
  const TimeAccumulator::Scope piece(saving_time_);
  if (!finish_save(at_end ? Patience::kUnlimited : Patience::kLimited)) return skip_save();
  const BestValue best = tracker_->record().kept;
  if (saved_step_ == position_.step) {
    if (best.step == saved_step_) best_on_disk_ = best;  // evaluated after it was saved
    return;
  }
  progress_->finish();  // do not write the log into the bar
  runner_->sync_ranks(position_.step);
  if (divergence_)
    divergence_->compare(position_.step);  // never replace a good checkpoint by a bad one
  unsaved_ = runner_->finite_check().bad_state();
  if (!unsaved_.empty()) return log_unsaved();
  saved_step_ = position_.step;
  saving_best_ = best;
  saving_ = true;
  save_skipped_ = false;
  const Keep keep{.newest = static_cast<int>(job_.checkpoint.integer("keep")),
                  .also_step = best.step};
  if (!at_end) return saver_->begin(position_, keep);
  saver_->begin(position_, keep, CheckpointSaver::Values::kInPlace);
  finish_save(Patience::kUnlimited);
}

// The result of a save in the background. Training continues after a failure: the next save may
// succeed.
void Trainer::poll_save() {
  const auto outcome = saver_->take();
  if (!outcome) return;
  progress_->finish();
  save_failure_.clear();
  if (!outcome->failure) {
    if (is_leader()) spdlog::info("saved {}", outcome->folder);
    return published_.saved(outcome->step);
  }
  save_failure_ = saving_failure(outcome->failure);
  spdlog::warn("step {} is not saved: {}; training continues, and the next checkpoint may succeed",
               outcome->step, save_failure_);
}

// Waits for this rank's save until that time; false: it still runs.
bool Trainer::wait_for_save(double until) {
  while (!saver_->wait_for(std::chrono::milliseconds(200))) {
    log_writer();
    if (monotonic_seconds() >= until) return false;
  }
  return true;
}

// Waits for the previous save and for the ranks' agreement on its result. False: it still runs on
// some rank. Once the disk does not answer, later calls do not wait for it again.
bool Trainer::finish_save(Patience patience) {
  constexpr double kLimit = 60, kRound = 1, kSecondsBetweenLines = 30;
  if (!saving_) return true;
  const TimeAccumulator::Scope piece(saving_time_);
  const double begun = monotonic_seconds();
  const double end = patience == Patience::kUnlimited ? std::numeric_limits<double>::infinity()
                     : save_hangs_                    ? begun
                                                      : begun + kLimit;
  double logged = begun;
  std::array<double, 3> state;  // ranks that failed, that still save, that will not wait longer
  // In rounds: a save may take longer than a collective may wait.
  do {
    const bool done = wait_for_save(std::min(end, monotonic_seconds() + kRound));
    poll_save();
    const double now = monotonic_seconds();
    if (!done && now - logged >= kSecondsBetweenLines) {
      logged = now;
      progress_->finish();
      spdlog::warn("step {} is still being saved after {}: does {} answer? Training waits",
                   saved_step_, format_duration(now - begun), checkpoints());
    }
    state = {save_failure_.empty() ? 0.0 : 1.0, done ? 0.0 : 1.0, now >= end ? 1.0 : 0.0};
    runner_->control().sum(state);
  } while (state[1] > 0 && state[2] == 0);
  save_hangs_ = state[1] > 0;
  if (save_hangs_) return false;
  saving_ = false;
  save_failed_ = state[0] > 0;
  if (save_failed_) {
    drop_best_of_step(saved_step_);
  } else if (saving_best_.step == saved_step_) {
    best_on_disk_ = saving_best_;
  }
  (save_failed_ ? saved_step_ : kept_step_) = save_failed_ ? kept_step_ : saved_step_;
  return true;
}

// Not the best checkpoint then: it is not on the disk.
void Trainer::drop_best_of_step(int64_t step) {
  if (tracker_->record().kept.step != step) return;
  tracker_->restore_best(best_on_disk_);
  if (tracker_->wanted()) position_.evaluations = tracker_->record();
}

// Training continues while the disk does not answer, as it does while the disk is full.
void Trainer::skip_save() {
  save_skipped_ = true;
  drop_best_of_step(position_.step);
  if (!is_leader()) return;
  progress_->finish();
  spdlog::warn(
      "step {} is not saved: step {} is still being saved, and {} does not answer; "
      "training continues, and the next checkpoint may succeed",
      position_.step, saved_step_, checkpoints());
}

void Trainer::save_at_end() {
  finish_save(Patience::kUnlimited);
  if (job_.checkpoint.boolean("at_end") || save_failed_ || save_skipped_) save(true);
}

}  // namespace fleet
