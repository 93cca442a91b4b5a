// Counts how a trainer uses its servers, for the launcher and metrics.jsonl.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "base/mutex.h"
#include "observe/event_file.h"
#include "observe/server_progress.h"
#include "ps/message.h"

namespace fleet::ps {

// Thread-safe.
class TrainerCounters {
 public:
  // capacity: the most pushes in the queue; 0: there is none.
  explicit TrainerCounters(int servers, int capacity = 0,
                           ServerProgressWriter writer = ServerProgressWriter::from_env());

  void sent(int server, const Message& message);
  void received(int server, const Message& message);
  // Messages of evaluations do not count.
  void count(bool on);
  // At the end of an update. queued: pushes in the queue. stale: as of ServerUse::stale.
  void updated(int64_t queued = 0, int64_t stale = 0);
  ServerUse use() const;
  // Means since the previous line, per update.
  void add_to(EventLine* line);

  // Adds its own lifetime to one of the waits of ServerUse.
  class Wait {
   public:
    using Total = int64_t ServerUse::*;
    Wait(TrainerCounters& counters, Total total)
        : counters_(counters), total_(total), begun_(std::chrono::steady_clock::now()) {}
    ~Wait() { counters_.waited(total_, std::chrono::steady_clock::now() - begun_); }
    Wait(const Wait&) = delete;

   private:
    TrainerCounters& counters_;
    const Total total_;
    const std::chrono::steady_clock::time_point begun_;
  };

 private:
  using Clock = std::chrono::steady_clock;
  // Requests to a server that it has not answered.
  struct Open {
    int pushes = 0, pulls = 0;
    Clock::time_point since{};
    bool any() const { return pushes + pulls > 0; }
  };
  void waited(int64_t ServerUse::*total, Clock::duration time);
  void end(int server, Open& open) FLEET_REQUIRES(mutex_);

  ServerProgressWriter writer_;
  mutable Mutex mutex_;
  ServerUse use_ FLEET_GUARDED_BY(mutex_);
  ServerUse written_ FLEET_GUARDED_BY(mutex_);  // at the last line
  std::vector<Open> open_ FLEET_GUARDED_BY(mutex_);
  bool counts_ FLEET_GUARDED_BY(mutex_) = true;
};

}  // namespace fleet::ps
