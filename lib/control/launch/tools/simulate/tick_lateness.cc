#include "launch/tools/simulate/tick_lateness.h"

#include <algorithm>

#include "base/clock.h"

namespace fleet {
namespace {

constexpr std::chrono::milliseconds kTick{100};

}  // namespace

TickLateness::TickLateness()
    : due_(std::chrono::steady_clock::now() + kTick), ticker_([this] { return tick(); }) {
  ticker_.due_by(due_);
}

Ticker::Time TickLateness::tick() {
  const auto now = std::chrono::steady_clock::now();
  longest_ns_ = std::max<int64_t>(longest_ns_, steady_ns(now) - steady_ns(due_));
  return due_ = now + kTick;
}

}  // namespace fleet
