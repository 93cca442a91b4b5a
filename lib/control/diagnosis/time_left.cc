#include "diagnosis/time_left.h"

#include <algorithm>

namespace fleet {

void TimeLeft::update(int64_t step, Time now) {
  if (!points_.empty() && step < points_.back().step) points_.clear();
  // A rank that does not finish steps must not look ever slower: only steps are points.
  if (!points_.empty() && step == points_.back().step) return;
  const size_t count = points_.size();
  if (count >= 2 && points_[count - 1].at - points_[count - 2].at < kSpacing) {
    points_.back() = {now, step};
  } else {
    points_.push_back({now, step});
  }
  if (points_.size() > kPoints) points_.pop_front();
}

std::optional<double> TimeLeft::seconds(int64_t target) const {
  if (target <= 0 || points_.size() < 2) return std::nullopt;
  const Point &first = points_.front(), &last = points_.back();
  const double passed = std::chrono::duration<double>(last.at - first.at).count();
  const auto left = static_cast<double>(std::max<int64_t>(target - last.step, 0));
  return left * passed / static_cast<double>(last.step - first.step);
}

}  // namespace fleet
