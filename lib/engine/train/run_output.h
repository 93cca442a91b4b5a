// The files of a run other than checkpoints: metrics.jsonl, TensorBoard's, config.txt, and tables.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "data/pipeline.h"
#include "observe/event_file.h"
#include "train/job.h"
#include "train/output_writer.h"
#include "train/tensorboard_log.h"

namespace fleet {

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
