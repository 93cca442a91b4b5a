#include "data/reader_meter.h"

#include <utility>

namespace fleet::data {

void ReaderMeter::add_idle(int more, Time now) {
  window_.idle += idle_threads_ * std::chrono::duration<double>(now - idle_since_).count();
  idle_since_ = now;
  idle_threads_ += more;
}

std::optional<ReaderMeter::Change> ReaderMeter::on_batch(double waited, Time now) {
  window_.waited += waited;
  ++window_.batches;
  window_.seconds += std::chrono::duration<double>(now - begun_).count();
  begun_ = now;
  if (!ReaderTuner::is_long_enough(window_.seconds, window_.batches)) return std::nullopt;
  add_idle(0, now);
  const ReaderTuner::Window window = std::exchange(window_, {});
  const ReaderSize old = tuner_.size(), size = tuner_.next(window);
  if (size == old) return std::nullopt;
  return Change{size, window.waited / window.seconds};
}

}  // namespace fleet::data
