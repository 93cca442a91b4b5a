// Saving of checkpoints in a Trainer.
#include <algorithm>
#include <exception>
#include <filesystem>

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
void Trainer::end_for_failure() {
  if (job_.checkpoint.boolean("at_end") || job_.checkpoint.integer("every_steps") > 0 ||
      job_.checkpoint.integer("every_epochs") > 0) {
    save(true);
  }
  finish_save();
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
  if (saving_) poll_save(true);
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
  finish_save();
  if (saved_step_ == position_.step) return;
  progress_->finish();  // do not write the log into the bar
  runner_->sync_ranks(position_.step);
  if (divergence_)
    divergence_->compare(position_.step);  // never replace a good checkpoint by a bad one
  unsaved_ = runner_->finite_check().bad_state();
  if (!unsaved_.empty()) return log_unsaved();
  saved_step_ = position_.step;
  saving_ = true;
  const Keep keep{.newest = static_cast<int>(job_.checkpoint.integer("keep")),
                  .also_step = tracker_->record().kept.step};
  if (!at_end) return saver_->begin(position_, keep);
  saver_->save(position_, keep);
  finish_save();
}

// The result of a save in the background. Training continues after a failure: the next save may
// succeed.
void Trainer::poll_save(bool wait) {
  const auto outcome = saver_->take(wait);
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

// Waits for the previous save and for the ranks' agreement on its result.
void Trainer::finish_save() {
  if (!std::exchange(saving_, false)) return;
  const TimeAccumulator::Scope piece(saving_time_);
  poll_save(true);
  double failed = save_failure_.empty() ? 0 : 1;
  runner_->control().sum({&failed, 1});
  save_failed_ = failed > 0;
  if (save_failed_ && tracker_->record().kept.step == saved_step_)
    tracker_->restore_best(kept_before_);
  (save_failed_ ? saved_step_ : kept_step_) = save_failed_ ? kept_step_ : saved_step_;
}

void Trainer::save_at_end() {
  finish_save();
  if (job_.checkpoint.boolean("at_end") || save_failed_) save(true);
}

}  // namespace fleet
