// Writes a trace of some steps when the launcher asks for one (fleetrun trace): operations by
// stream, input, collectives, steps.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "base/mutex.h"
#include "exec/executor.h"
#include "observe/collective_log.h"
#include "observe/rank_progress.h"
#include "observe/trace_recorder.h"

namespace fleet {

// The collectives of this process in a trace, with the data that match them across ranks.
// Thread-safe.
class CollectiveTrace : public CollectiveListener {
 public:
  // The process's own. It is never destroyed: calls may end at any time.
  static CollectiveTrace& of_process();

  // rank: this process's, in the job. null: the trace has ended.
  void record(TraceRecorder* recorder, int rank = 0) FLEET_EXCLUDES(mutex_);
  void done(const CollectiveRecord& call) override FLEET_EXCLUDES(mutex_);

 private:
  using NameKey = std::tuple<uint64_t, CollectiveKind, int32_t, std::string>;
  uint32_t track_of(const CollectiveGroup& group) FLEET_REQUIRES(mutex_);
  uint32_t name_of_call(const CollectiveRecord& call, const CollectiveGroup& group)
      FLEET_REQUIRES(mutex_);

  Mutex mutex_;
  TraceRecorder* recorder_ FLEET_GUARDED_BY(mutex_) = nullptr;
  int rank_ FLEET_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, CollectiveGroup> groups_ FLEET_GUARDED_BY(mutex_);
  std::map<uint64_t, uint32_t> tracks_ FLEET_GUARDED_BY(mutex_);  // by group
  std::map<NameKey, uint32_t> names_ FLEET_GUARDED_BY(mutex_);
};

// A key that all ranks' parts of one call share, with its sequence number. sender, receiver: for
// a message; -1: none.
std::string collective_key(const CollectiveGroup& group, int sender, int receiver);

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
