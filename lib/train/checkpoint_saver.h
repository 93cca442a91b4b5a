// Saves checkpoints by a thread while training goes on.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "base/thread.h"
#include "train/checkpoint.h"

namespace fleet {

// One thread drives it; all ranks make the same calls in the same order.
class CheckpointSaver {
 public:
  // What became of a save, on this rank: ranks that write nothing hear of no failure.
  struct Outcome {
    int64_t step = 0;
    std::string folder;          // on rank 0, where it is on the disk
    std::exception_ptr failure;  // null: none; else Error or what the system threw
  };

  // root: the folder of checkpoints. control: null, or one that nobody else uses, which states of
  // each rank need. It and the executor must outlive this.
  CheckpointSaver(std::string root, Executor& executor, const JobRank& own,
                  std::unique_ptr<Control> control);
  // Waits for the thread; a failure is lost.
  ~CheckpointSaver() = default;

  // Copies the values as they are after the steps so far and returns; a thread writes them. Waits
  // for the save before, whose outcome must have been taken.
  void begin(const TrainingPosition& position, const Keep& keep);
  // The same at once, without a copy: for when nothing is trained meanwhile.
  void save(const TrainingPosition& position, const Keep& keep);
  // What became of the last save, once; nothing where there was none, or it is not done yet. wait:
  // until it is.
  std::optional<Outcome> take(bool wait);

 private:
  void write(const TrainingPosition& position, const CheckpointValues& values, const Keep& keep);

  const std::string root_;
  Executor& executor_;
  const JobRank own_;
  const std::unique_ptr<Control> control_;
  std::optional<Outcome> outcome_;  // the thread's until done_
  std::atomic<bool> done_ = false;
  Thread thread_;
};

}  // namespace fleet
