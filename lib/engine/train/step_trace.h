// Writes a trace of some steps when the launcher asks for one (fleetrun trace): operations by
// stream, input, collectives, steps.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "exec/executor.h"
#include "observe/rank_progress.h"
#include "observe/trace_recorder.h"

namespace fleet {

// For the training thread.
class StepTrace {
 public:
  // They must outlive it.
  StepTrace(const ProgressWriter& launcher, Executor& executor, int rank);
  ~StepTrace();
  StepTrace(const StepTrace&) = delete;

  // Call before the ranks agree on a step: whether this rank will record the step after it. It
  // begins no trace that it has not announced. Without a request: one load.
  bool announce() { return announced_ = recording_ || launcher_.trace_request() != request_; }
  // Call before each step, and before its batch is waited for. Without a request: one load.
  void step_begins(int64_t step) {
    if (recorder_ || launcher_.trace_request() != request_) follow(step);
  }
  // Ends a trace that is not complete: no step follows.
  void finish();

 private:
  void follow(int64_t step);
  void begin();
  void end();

  const ProgressWriter& launcher_;
  Executor& executor_;
  const int rank_;
  uint64_t request_ = 0;  // the last one seen
  // While it records; afterwards until no thread uses it.
  std::unique_ptr<TraceRecorder> recorder_;
  bool recording_ = false, announced_ = false;
  int64_t steps_left_ = 0, step_ = 0, begun_ns_ = 0;
};

}  // namespace fleet
