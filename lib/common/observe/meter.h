// Averages and times that a training loop shows. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

#include "base/clock.h"

namespace fleet {

// The mean of the last `window` values, and the mean of all.
class MovingAverage {
 public:
  explicit MovingAverage(size_t window = 20);
  void add(double value);
  double last() const { return recent_.empty() ? 0 : recent_.back(); }
  double mean() const;                     // over the window; 0 before the first value
  double overall_mean() const;             // since the last reset; 0 before the first value
  double total() const { return total_; }  // since the last reset
  uint64_t count() const { return count_; }
  void reset();

 private:
  size_t window_;
  std::deque<double> recent_;
  double total_ = 0;
  uint64_t count_ = 0;
};

// A mean weighted by sample counts: for the loss of a padded batch, or the accuracy of an epoch.
class WeightedAverage {
 public:
  void add(double value, double weight) {
    sum_ += value * weight;
    weight_ += weight;
  }
  double mean() const { return weight_ > 0 ? sum_ / weight_ : 0; }
  double weight() const { return weight_; }
  void reset() { sum_ = weight_ = 0; }

 private:
  double sum_ = 0, weight_ = 0;
};

// Measures the time of each step. Call data_ready() when the batch is there and step_done() at the
// end of the step:
//   data_time   seconds a step waited for its batch
//   batch_time  seconds of the whole step, waiting included
//   speed       samples per second, over the window
class StepMeter {
 public:
  explicit StepMeter(size_t window = 20, Clock clock = monotonic_seconds);
  // Begins the next step now: time since the last step (an evaluation, a checkpoint) is not
  // counted.
  void start();
  void data_ready();
  void step_done(double samples);

  const MovingAverage& data_time() const { return data_time_; }
  const MovingAverage& batch_time() const { return batch_time_; }
  double speed() const;  // 0 before the first step
  double samples() const { return samples_.total(); }

 private:
  Clock clock_;
  double begun_;
  double waited_ = 0;
  MovingAverage data_time_, batch_time_, samples_;
};

// Seconds spent on one activity, in pieces. Time in nested pieces counts once.
class TimeAccumulator {
 public:
  explicit TimeAccumulator(Clock clock = monotonic_seconds) : clock_(std::move(clock)) {}
  double seconds() const { return seconds_; }

  // Counts from construction to the end of the scope.
  class Scope {
   public:
    explicit Scope(TimeAccumulator& account) : account_(account) {
      if (account_.depth_++ == 0) account_.begun_ = account_.clock_();
    }
    ~Scope() {
      if (--account_.depth_ == 0) account_.seconds_ += account_.clock_() - account_.begun_;
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    TimeAccumulator& account_;
  };

 private:
  Clock clock_;
  int depth_ = 0;
  double begun_ = 0, seconds_ = 0;
};

}  // namespace fleet
