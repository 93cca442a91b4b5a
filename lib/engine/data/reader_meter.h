// Measures a running reader for its ReaderTuner, window by window. Internal to data.
#pragma once

#include <chrono>
#include <optional>

#include "data/reader_tuner.h"

namespace fleet::data {

// Pure: the time is an argument. Not thread-safe.
class ReaderMeter {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Change {
    ReaderSize size;
    double waited = 0;  // share of the last window in which the consumer waited for input
  };

  ReaderMeter(const ReaderTuner::Options& options, Time now)
      : tuner_(options), begun_(now), idle_since_(now) {}

  const ReaderSize& size() const { return tuner_.size(); }
  // The time since the last batch does not count: the consumer did something else.
  void skip_to(Time now) { begun_ = idle_since_ = now; }
  // From now on, `more` threads have no batch to make; less than 0: they have work again.
  void add_idle(int more, Time now);
  // The consumer has got a batch, and had waited for it for these seconds. Returns the size if it
  // changes.
  std::optional<Change> on_batch(double waited, Time now);

 private:
  ReaderTuner tuner_;
  ReaderTuner::Window window_;  // the current one
  Time begun_;                  // when the last batch was taken
  Time idle_since_;             // the time that idle threads have spent is counted up to here
  int idle_threads_ = 0;
};

}  // namespace fleet::data
