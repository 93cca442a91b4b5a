#include "train/checkpoint_saver.h"

#include "base/error.h"
#include "base/log.h"

namespace fleet {

CheckpointSaver::CheckpointSaver(std::string root, Executor& executor, const JobRank& own,
                                 std::unique_ptr<RankCoordinator> control)
    : root_(std::move(root)),
      executor_(executor),
      own_(own),
      control_(control ? std::move(control) : std::make_unique<RankCoordinator>(nullptr)) {}

void CheckpointSaver::write(const TrainingPosition& position, const CheckpointValues& values,
                            const Keep& keep) {
  Outcome outcome{.step = position.step, .failure = nullptr};
  try {
    outcome.folder = save_on_all_ranks(root_, position, values, keep, own_, *control_);
  } catch (...) {
    outcome.failure = std::current_exception();
  }
  const MutexLock lock(mutex_);
  outcome_ = std::move(outcome);
  saving_ = false;
  done_.notify_all();
}

void CheckpointSaver::begin(const TrainingPosition& position, const Keep& keep, Values values) {
  const bool copy = values == Values::kCopied;
  auto saved = std::make_shared<CheckpointValues>(values_of(executor_, own_, copy));
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
