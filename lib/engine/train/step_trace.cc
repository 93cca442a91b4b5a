#include "train/step_trace.h"

#include "base/clock.h"

namespace fleet {

StepTrace::StepTrace(const ProgressWriter& launcher, Executor& executor, int rank)
    : launcher_(launcher), executor_(executor), rank_(rank), request_(launcher.trace_request()) {}

StepTrace::~StepTrace() {
  TraceRecorder::set_active(nullptr);
  if (recording_) CollectiveTrace::of_process().record(nullptr);
  // Work of a step that failed, or a thread that a dead mount holds up, may still write: the memory
  // then stays.
  if (recording_ || TraceRecorder::in_use()) (void)recorder_.release();
}

void StepTrace::follow(int64_t step) {
  if (recording_ && step != step_) {                // else an epoch ended before it
    if (steps_left_ == 1) executor_.synchronize();  // the last step ends with its work
    const int64_t now = monotonic_ns();
    recorder_->add(recorder_->track_of_this_thread(), number_of(TraceName::kStep), begun_ns_, now,
                   step_);
    recorder_->step_done();
    --steps_left_;
    if (steps_left_ == 0) end();
  }
  if (launcher_.trace_request() != request_) {
    if (recording_) end();
    if (announced_ && (!recorder_ || !TraceRecorder::in_use())) begin();
  } else if (!recording_ && !TraceRecorder::in_use()) {
    recorder_.reset();
  }
  if (!recording_) return;
  step_ = step;
  begun_ns_ = monotonic_ns();
}

// Names and memory are made here, before the first recorded step.
void StepTrace::begin() {
  request_ = launcher_.trace_request();
  recorder_ = TraceRecorder::open(launcher_.trace_path(request_));
  if (!recorder_) return;
  steps_left_ = recorder_->steps();
  recorder_->track_of_this_thread("training");
  executor_.set_trace(recorder_.get(), steps_left_);
  CollectiveTrace::of_process().record(recorder_.get(), rank_);
  TraceRecorder::set_active(recorder_.get());
  recording_ = true;
}

// Throws what the executor throws.
void StepTrace::end() {
  executor_.synchronize();  // its streams write to the recorder
  recording_ = false;
  TraceRecorder::set_active(nullptr);
  CollectiveTrace::of_process().record(nullptr);
  executor_.set_trace(nullptr);
  recorder_->finish();
}

void StepTrace::finish() {
  if (recording_) end();
}

}  // namespace fleet
