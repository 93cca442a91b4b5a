#include "node/hang_detector.h"

#include <algorithm>

namespace fleet {

std::chrono::milliseconds HangDetector::update(const RankActivity& signs, Time now) {
  constexpr double kIdleShare = 0.02;
  now = clock_.at(now);
  const std::chrono::duration<double> quiet = now - since_;
  const double used = signs.cpu_seconds - last_.cpu_seconds;
  // A process that left the tree took its CPU time along; something lives.
  const bool seems_alive =
      signs.output > last_.output || used < 0 || (used > 0 && used >= kIdleShare * quiet.count());
  const bool alive = signs.ticks != last_.ticks || (signs.ticks == 0 && seems_alive);
  if (!begun_ || alive) {
    begun_ = true;
    last_ = signs;
    since_ = now;
    return {};
  }
  if (reported_ || now - since_ < timeout_) return {};
  reported_ = true;
  return std::chrono::duration_cast<std::chrono::milliseconds>(now - since_);
}

}  // namespace fleet
