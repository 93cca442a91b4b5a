#include "node/realtime_history.h"

#include <time.h>

#include <cstdlib>
#include <limits>

namespace fleet {
namespace {

constexpr size_t kMost = 1'000;
// A clock that is slewed moves by at most 500 ppm.
constexpr int64_t kMoved = 500'000;
constexpr int64_t kSampled = 1'000'000'000;  // between samples

int64_t read_clock(clockid_t clock) {
  timespec now = {};
  ::clock_gettime(clock, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

void RealtimeHistory::sample(int64_t before_ns, int64_t realtime_ns, int64_t after_ns) {
  const int64_t middle = before_ns + (after_ns - before_ns) / 2;
  const int64_t offset = realtime_ns - middle, error = (after_ns - before_ns + 1) / 2;
  if (!offsets_.empty()) {
    const wire::RealtimeOffset& last = offsets_.back();
    if (std::abs(offset - last.offset_ns()) <= kMoved + error + last.error_ns()) return;
  }
  if (offsets_.size() == kMost) offsets_.erase(offsets_.begin());
  wire::RealtimeOffset& added = offsets_.emplace_back();
  added.set_since_ns(middle);
  added.set_offset_ns(offset);
  added.set_error_ns(error + kMoved);
}

void RealtimeHistory::sample_clocks() {
  const int64_t before = read_clock(CLOCK_MONOTONIC), realtime = read_clock(CLOCK_REALTIME);
  sample(before, realtime, read_clock(CLOCK_MONOTONIC));
}

std::optional<MonotonicTime> to_monotonic(std::span<const wire::RealtimeOffset* const> offsets,
                                          int64_t realtime_ns) {
  std::optional<MonotonicTime> found;
  for (size_t i = 0; i < offsets.size(); ++i) {
    // The first difference also holds before it was taken. A step was up to a sample earlier.
    const int64_t since =
        i == 0 ? std::numeric_limits<int64_t>::min() : offsets[i]->since_ns() - kSampled;
    const int64_t until =
        i + 1 == offsets.size() ? std::numeric_limits<int64_t>::max() : offsets[i + 1]->since_ns();
    const int64_t own = realtime_ns - offsets[i]->offset_ns();
    if (own >= since && own < until) found = MonotonicTime{own, offsets[i]->error_ns()};
  }
  if (found || offsets.empty()) return found;
  for (size_t i = 1; i < offsets.size(); ++i) {
    if (realtime_ns - offsets[i]->offset_ns() >= offsets[i]->since_ns()) continue;
    return MonotonicTime{offsets[i]->since_ns(), kSampled};
  }
  return MonotonicTime{offsets.back()->since_ns(), kSampled};
}

}  // namespace fleet
