// The files of a run other than checkpoints: metrics.jsonl, TensorBoard's, config.txt, and tables.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"
#include "data/pipeline.h"
#include "observe/event_file.h"
#include "train/job.h"
#include "train/tensorboard_log.h"

namespace fleet {

// Writes files on a thread, so that training never waits for a disk.
//   OutputWriter writer("output/lenet/run-001");
//   writer.write([=] { append_to(file, line); });
//   for (const std::string& line : writer.take_messages()) spdlog::warn("{}", line);
// Thread-safe.
class OutputWriter {
 public:
  // How long a write may take before a message says so.
  static constexpr std::chrono::seconds kPatience{10};
  // Writes that may wait while the disk does not answer.
  static constexpr size_t kLongestQueue = 100'000;

  // folder: where the files are, for messages.
  explicit OutputWriter(std::string folder, std::chrono::milliseconds patience = kPatience,
                        size_t longest_queue = kLongestQueue);
  // Finishes all writes first, however long the disk takes.
  ~OutputWriter();

  // Runs `task` after the earlier ones, on the thread. If the queue is full, the oldest waiting
  // task is dropped. A task that throws does not end the others.
  void write(std::function<void()> task);
  // Messages for the user since the last call, a line each: the first failure after a success,
  // a folder that does not answer, and the end of that.
  std::vector<std::string> take_messages();
  // Waits until all writes are done; false: timeout.
  bool wait_for(std::chrono::milliseconds time);
  // Writes that are not done.
  size_t pending();

 private:
  using Clock = std::chrono::steady_clock;
  void run();
  void run_task(const std::function<void()>& task) FLEET_EXCLUDES(mutex_);
  double seconds_of_write() const FLEET_REQUIRES(mutex_);
  void note_slow_write() FLEET_REQUIRES(mutex_);
  void note_end_of_write() FLEET_REQUIRES(mutex_);

  const std::string folder_;
  const Clock::duration patience_;
  const size_t longest_queue_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> queue_ FLEET_GUARDED_BY(mutex_);
  bool writing_ FLEET_GUARDED_BY(mutex_) = false;
  Clock::time_point begun_ FLEET_GUARDED_BY(mutex_);  // when the current write began
  bool slow_ FLEET_GUARDED_BY(mutex_) = false;        // a message has said so
  bool fails_ FLEET_GUARDED_BY(mutex_) = false;       // the last write failed
  size_t dropped_ FLEET_GUARDED_BY(mutex_) = 0;
  bool ends_ FLEET_GUARDED_BY(mutex_) = false;
  std::vector<std::string> messages_ FLEET_GUARDED_BY(mutex_);
  Thread thread_;
};

// On rank 0. On other ranks nothing opens it, and its calls do nothing. For use by one thread.
class RunOutput {
 public:
  // Sets files of an earlier run aside if `new_run`. step: at which this start begins.
  void open(const std::string& folder, const Job& job, int64_t step, bool new_run);
  // Only for the results of an evaluation without training: appends to evaluations.jsonl. kIo.
  void open_results(const std::string& folder);
  bool is_open() const { return writer_ != nullptr; }

  // A line of metrics.jsonl, which TensorBoard shows too.
  void write(const EventLine& line);
  // A file of the folder, whole.
  void write_file(const std::string& name, std::string text);
  // The images of the run's first batch, in TensorBoard.
  void show_batch(const data::Batch& batch, int64_t step);
  // The gradients of a step, in TensorBoard, if the job wants them. scale: the loss's.
  void show_gradients(Executor& executor, double scale, int64_t step);
  // Messages about files that could not be written, since the last call.
  std::vector<std::string> take_messages();
  // Writes that are not done.
  size_t pending() const { return writer_ ? writer_->pending() : 0; }
  // Waits until all writes are done; false: timeout.
  bool wait_for(std::chrono::milliseconds time) { return !writer_ || writer_->wait_for(time); }

 private:
  std::string folder_;
  Settings data_;  // the job's
  bool shows_gradients_ = false, shown_images_ = false;
  std::shared_ptr<EventFile> events_;            // used by writer_ only
  std::unique_ptr<TensorboardLog> tensorboard_;  // null: not wanted
  std::unique_ptr<OutputWriter> writer_;
};

}  // namespace fleet
