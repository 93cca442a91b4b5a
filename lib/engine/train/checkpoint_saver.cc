#include "train/checkpoint_saver.h"

#include "base/error.h"

namespace fleet {

CheckpointSaver::CheckpointSaver(std::string root, Executor& executor, const JobRank& own,
                                 std::unique_ptr<RankCoordinator> control)
    : root_(std::move(root)),
      executor_(executor),
      own_(own),
      control_(control ? std::move(control) : std::make_unique<RankCoordinator>(nullptr)) {}

void CheckpointSaver::write(const TrainingPosition& position, const CheckpointValues& values,
                            const Keep& keep) {
  Outcome outcome{.step = position.step, .folder = {}, .failure = nullptr};
  try {
    outcome.folder = save_on_all_ranks(root_, position, values, keep, own_, *control_);
  } catch (...) {
    outcome.failure = std::current_exception();
  }
  outcome_ = std::move(outcome);
  done_.store(true, std::memory_order_release);
}

void CheckpointSaver::begin(const TrainingPosition& position, const Keep& keep) {
  FLEET_CHECK(!outcome_ && !thread_.joinable(), "the outcome of the previous save was not taken");
  auto values = std::make_shared<CheckpointValues>(values_of(executor_, own_, true));
  if (own_.rank != 0 && !values->part) return write(position, *values, keep);  // writes nothing
  thread_ = Thread("save", [this, position, keep, values] { write(position, *values, keep); });
}

void CheckpointSaver::save(const TrainingPosition& position, const Keep& keep) {
  FLEET_CHECK(!outcome_ && !thread_.joinable(), "the outcome of the previous save was not taken");
  write(position, values_of(executor_, own_, false), keep);
}

std::optional<CheckpointSaver::Outcome> CheckpointSaver::take(bool wait) {
  if (!wait && !done_.load(std::memory_order_acquire)) return std::nullopt;
  if (thread_.joinable()) {
    thread_.join();
    thread_ = Thread();
  }
  done_ = false;
  return std::exchange(outcome_, std::nullopt);
}

}  // namespace fleet
