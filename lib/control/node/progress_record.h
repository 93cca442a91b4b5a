// How far the training of this node's ranks is, for the job record: fleetrun ls and status show it.
// Pure: the time is an argument. Not thread-safe.
#pragma once

#include <chrono>

#include "diagnosis/live_table.h"
#include "rendezvous/types.h"

namespace fleet {

class ProgressRecord {
 public:
  using Time = std::chrono::steady_clock::time_point;

  void begin();  // a generation begins
  // Returns whether it is time to write the record: every few seconds.
  bool update(const StepReport& report, Time now, double unix_time);
  const wire::JobProgress& progress() const { return progress_; }

 private:
  wire::JobProgress progress_;
  TimeLeft time_left_;
  Time next_write_{};
};

}  // namespace fleet
