#include "observe/meter.h"

#include <numeric>

namespace fleet {

MovingAverage::MovingAverage(size_t window) : window_(window > 0 ? window : 1) {}

void MovingAverage::add(double value) {
  recent_.push_back(value);
  if (recent_.size() > window_) recent_.pop_front();
  total_ += value;
  ++count_;
}

double MovingAverage::mean() const {
  if (recent_.empty()) return 0;
  // Summed again each time: a running sum would drift, and would keep a NaN forever.
  const double sum = std::accumulate(recent_.begin(), recent_.end(), 0.0);
  return sum / static_cast<double>(recent_.size());
}

double MovingAverage::overall_mean() const {
  return count_ > 0 ? total_ / static_cast<double>(count_) : 0;
}

void MovingAverage::reset() {
  recent_.clear();
  total_ = 0;
  count_ = 0;
}

StepMeter::StepMeter(size_t window, Clock clock)
    : clock_(std::move(clock)),
      begun_(clock_()),
      data_time_(window),
      batch_time_(window),
      samples_(window) {}

void StepMeter::start() {
  begun_ = clock_();
  waited_ = 0;
}

void StepMeter::data_ready() { waited_ = clock_() - begun_; }

void StepMeter::step_done(double samples) {
  const double now = clock_();
  data_time_.add(waited_);
  batch_time_.add(now - begun_);
  samples_.add(samples);
  begun_ = now;
  waited_ = 0;
}

double StepMeter::speed() const {
  return batch_time_.mean() > 0 ? samples_.mean() / batch_time_.mean() : 0;
}

}  // namespace fleet
