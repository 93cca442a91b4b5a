// The collectives of this process in a trace, with the data that match them across ranks.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>

#include "base/mutex.h"
#include "observe/collective_log.h"
#include "observe/trace_recorder.h"

namespace fleet {

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

}  // namespace fleet
