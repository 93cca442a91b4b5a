#include "base/running_clock.h"

#include "base/mutex.h"

namespace fleet {

RunningClock::Time running_now() {
  static Mutex mutex;
  static RunningClock clock FLEET_GUARDED_BY(mutex) =
      RunningClock(std::chrono::steady_clock::now(), RunningDeadline::kLook * 3 / 2);
  const auto now = std::chrono::steady_clock::now();
  const MutexLock lock(mutex);
  return clock.at(now);
}

double running_seconds() {
  return std::chrono::duration<double>(running_now().time_since_epoch()).count();
}

}  // namespace fleet
