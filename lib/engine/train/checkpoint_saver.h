// Saves checkpoints on a thread while training continues.
#pragma once

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "base/thread.h"
#include "train/checkpoint.h"

namespace fleet {

// Driven by one thread; all ranks make the same calls in the same order.
class CheckpointSaver {
 public:
  // The result of a save on this rank. Ranks that write nothing do not learn of failures.
  struct Outcome {
    int64_t step = 0;
    std::string folder = {};     // on rank 0, if the checkpoint is on the disk
    std::exception_ptr failure;  // null: success; else Error or a system exception
  };

  // root: the folder of checkpoints. control: null, or one with no
  // other user, which per-rank and sharded states require. It and the executor must outlive this
  // object.
  CheckpointSaver(std::string root, Executor& executor, const JobRank& own,
                  std::unique_ptr<RankCoordinator> control, MoreFiles more = {});
  // Waits for the thread; a failure is dropped.
  ~CheckpointSaver() = default;

  // Whether a save has values of its own. kInPlace: nothing may be trained until it has finished.
  enum class Values { kCopied, kInPlace };
  // Starts to save the values after the steps so far and returns; a thread writes them. The outcome
  // of the previous save must have been taken.
  void begin(const TrainingPosition& position, const Keep& keep, Values values = Values::kCopied);
  // Waits until no save runs; false: timeout.
  bool wait_for(std::chrono::milliseconds time);
  // The outcome of the last save, returned once; nullopt if there was no save, or it has not
  // finished.
  std::optional<Outcome> take();

 private:
  void write(const TrainingPosition& position, CheckpointValues& values, const Keep& keep);
  void drop_more() const;

  const std::string root_;
  Executor& executor_;
  const JobRank own_;
  const std::unique_ptr<RankCoordinator> control_;
  const MoreFiles more_;
  Mutex mutex_;
  CondVar done_;
  bool saving_ FLEET_GUARDED_BY(mutex_) = false;
  std::optional<Outcome> outcome_ FLEET_GUARDED_BY(mutex_);
  Thread thread_;
};

}  // namespace fleet
