#include "data/reader_tuner.h"

#include <algorithm>

namespace fleet::data {
namespace {

// Below this share of the time, waiting for batches is not worth a change.
constexpr double kWaits = 0.01;
// A trial must bring this much; less is noise.
constexpr double kGain = 1.03;
// Threads that have nothing to do for this share of the time wait for a free buffer.
constexpr double kIdle = 0.1;
constexpr int kHold = 60;  // windows: the load of a machine changes within minutes

}  // namespace

bool ReaderTuner::is_long_enough(double seconds, int64_t batches) {
  constexpr double kShortest = 0.5, kLongest = 3;
  constexpr int64_t kBatches = 8;
  return (seconds >= kShortest && batches >= kBatches) || (seconds >= kLongest && batches >= 2);
}

// Doubles the batches ahead if threads wait for buffers although the consumer waits too: then
// batches come in bursts. Otherwise adds half of the threads.
bool ReaderTuner::grow(const Window& window) {
  const ReaderSize old = size_;
  const bool bursts = window.idle > kIdle * window.seconds * size_.threads;
  const int prefetch = std::min(2 * size_.prefetch, options_.most.prefetch);
  const int threads = std::min(size_.threads + (size_.threads + 1) / 2, options_.most.threads);
  if (bursts || threads == size_.threads) {
    size_.prefetch = prefetch;
  } else {
    size_.threads = threads;
  }
  return size_ != old;
}

ReaderSize ReaderTuner::next(const Window& window) {
  const double rate = static_cast<double>(window.batches) / window.seconds;
  if (tries_) {
    tries_ = false;
    if (rate < kGain * rate_before_) {
      size_ = before_;
      hold_ = kHold;
      return size_;
    }
  }
  if (hold_ > 0) {
    --hold_;
    return size_;
  }
  if (window.waited < kWaits * window.seconds) return size_;
  before_ = size_;
  rate_before_ = rate;
  tries_ = grow(window);
  if (!tries_) hold_ = kHold;
  return size_;
}

}  // namespace fleet::data
