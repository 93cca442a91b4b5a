// The rank's end of a trace (trace_memory.h), and spans of any thread of the process.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/mutex.h"
#include "observe/trace_memory.h"

namespace fleet {

inline constexpr uint32_t number_of(TraceName name) { return static_cast<uint32_t>(name); }

// Thread-safe. add() takes no lock and allocates nothing.
class TraceRecorder {
 public:
  // path: TraceReader::path(). Null if the file cannot be mapped or is none.
  static std::unique_ptr<TraceRecorder> open(const std::string& path);

  int64_t steps() const { return memory_->steps; }  // to record
  // Return the number; take a lock. detail: shown next to an activity, may be empty. key: see
  // trace_memory.h.
  uint32_t add_name(std::string_view category, std::string_view name, std::string_view detail = {},
                    std::string_view key = {});
  uint32_t add_track(std::string_view name);
  // The calling thread's own track, made at its first call. name: instead of the thread's.
  uint32_t track_of_this_thread(std::string_view name = {});
  // Drops it if the memory is full.
  void add(uint32_t track, uint32_t name, int64_t begin_ns, int64_t end_ns, int64_t value);
  void step_done() { memory_->steps_done.fetch_add(1); }
  void finish() { memory_->state = TraceMemory::kDone; }

  // Spans of all threads go to this recorder; null: to none. It must live until no thread uses it.
  static void set_active(TraceRecorder* recorder) { active_ = recorder; }
  static bool in_use() { return users_ != 0; }
  // The recorder or null; leave() ends the use of a recorder. One load if null.
  static TraceRecorder* enter() {
    if (!active_.load(std::memory_order_relaxed)) return nullptr;
    ++users_;
    TraceRecorder* recorder = active_;
    if (!recorder) --users_;
    return recorder;
  }
  static void leave() { --users_; }

 private:
  explicit TraceRecorder(SharedMemory memory);
  void add_line(const std::string& line) FLEET_REQUIRES(mutex_);

  static inline std::atomic<TraceRecorder*> active_{nullptr};
  static inline std::atomic<int> users_{0};

  const SharedMemory mapped_;
  TraceMemory* const memory_;
  const uint64_t id_;  // unique in the process
  Mutex mutex_;
  uint32_t names_ FLEET_GUARDED_BY(mutex_) = 0, tracks_ FLEET_GUARDED_BY(mutex_) = 0;
};

// Records its own lifetime on the thread's track.
class TraceSpan {
 public:
  explicit TraceSpan(TraceName name, int64_t value = 0)
      : recorder_(TraceRecorder::enter()), name_(name), value_(value) {
    if (recorder_) begin_ns_ = monotonic_ns();
  }
  ~TraceSpan() { end(); }
  TraceSpan(const TraceSpan&) = delete;
  void end() {
    if (!recorder_) return;
    recorder_->add(recorder_->track_of_this_thread(), number_of(name_), begin_ns_, monotonic_ns(),
                   value_);
    recorder_ = nullptr;
    TraceRecorder::leave();
  }

 private:
  TraceRecorder* recorder_;
  const TraceName name_;
  const int64_t value_;
  int64_t begin_ns_ = 0;
};

}  // namespace fleet
