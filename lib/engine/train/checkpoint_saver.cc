#include "train/checkpoint_saver.h"

#include "base/error.h"
#include "base/log.h"

namespace fleet {

CheckpointSaver::CheckpointSaver(std::string root, Executor& executor, const JobRank& own,
                                 std::unique_ptr<RankCoordinator> control, MoreFiles more)
    : root_(std::move(root)),
      executor_(executor),
      own_(own),
      control_(control ? std::move(control) : std::make_unique<RankCoordinator>(nullptr)),
      more_(std::move(more)) {}

void CheckpointSaver::write(const TrainingPosition& position, CheckpointValues& values,
                            const Keep& keep) {
  bool written = false;
  if (more_.write && own_.rank == 0) {
    values.more = [&](const std::string& folder) {
      written = true;
      return more_.write(folder);
    };
  }
  Outcome outcome{.step = position.step, .failure = nullptr};
  try {
    outcome.folder = save_on_all_ranks(root_, position, values, keep, own_, *control_);
  } catch (...) {
    outcome.failure = std::current_exception();
    if (values.more && !written) drop_more();
  }
  const MutexLock lock(mutex_);
  outcome_ = std::move(outcome);
  saving_ = false;
  done_.notify_all();
}

// The first failure is the one to report.
void CheckpointSaver::drop_more() const {
  try {
    more_.write("");
  } catch (const Error& error) {
    spdlog::debug("{}", error.what());
  }
}

void CheckpointSaver::begin(const TrainingPosition& position, const Keep& keep, Values values) {
  const bool copy = values == Values::kCopied;
  auto saved = std::make_shared<CheckpointValues>(values_of(executor_, own_, copy));
  if (more_.cut) more_.cut();
  if (more_.part && saved->part) more_.part(&*saved->part);
  {
    const MutexLock lock(mutex_);
    FLEET_CHECK(!outcome_ && !saving_, "the outcome of the previous save was not taken");
    saving_ = true;
  }
  if (own_.rank != 0 && !saved->in_parts()) return write(position, *saved, keep);  // writes nothing
  try {
    thread_ = Thread("save", [this, position, keep, saved] { write(position, *saved, keep); });
  } catch (const Error& error) {  // the other ranks already save
    spdlog::warn("training waits for this save: {}", error.what());
    write(position, *saved, keep);
  }
}

bool CheckpointSaver::wait_for(std::chrono::milliseconds time) {
  const MutexLock lock(mutex_);
  return done_.wait_for(mutex_, time, [&]() FLEET_REQUIRES(mutex_) { return !saving_; });
}

std::optional<CheckpointSaver::Outcome> CheckpointSaver::take() {
  {
    const MutexLock lock(mutex_);
    if (saving_ || !outcome_) return std::nullopt;
  }
  if (thread_.joinable()) thread_.join();
  thread_ = Thread();
  const MutexLock lock(mutex_);
  return std::exchange(outcome_, std::nullopt);
}

}  // namespace fleet
