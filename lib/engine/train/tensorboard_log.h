// The content that a run shows in TensorBoard: the values of metrics.jsonl, images of the first
// batch, and on request the norms of gradients.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "data/pipeline.h"
#include "exec/executor.h"
#include "observe/event_file.h"

namespace fleet {

class TensorboardFile;

// Makes tasks that write; whoever runs them (OutputWriter) reports their failures. Not thread-safe,
// but the tasks may run on another thread, one after the other, and may outlive this object.
class TensorboardLog {
 public:
  using Task = std::function<void()>;
  // folder: for the event files; step: at which the run begins.
  TensorboardLog(const std::string& folder, int64_t step);

  Task values(const EventLine& line, double time) const;
  // The first images of the batch, without normalisation. data: its mean and std.
  Task images(const data::Batch& batch, const Settings& data, int64_t step) const;
  // A histogram of the norms of these gradients, which the plan must keep. scale: the factor of the
  // loss. Waits for the step.
  Task gradients(Executor& executor, double scale, int64_t step) const;

 private:
  std::shared_ptr<TensorboardFile> file_;
};

// The pixels of a sample, height x width x channels, as they were before normalisation.
std::vector<uint8_t> shown_pixels(const data::Batch& batch, int64_t sample, const Settings& data);

// The gradients of the parameters that this rank holds, except those that ranks other than the
// first sum up.
std::vector<VarId> gradients_of(const Program& program);

}  // namespace fleet
