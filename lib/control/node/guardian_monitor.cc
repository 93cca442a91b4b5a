#include <utility>

#include "node/guardian.h"

namespace fleet {

GuardianMonitor::GuardianMonitor(EventLoop& loop, std::function<void()> ping,
                                 std::function<void()> on_hung, HeartbeatTimes times)
    : times_(times), ping_(std::move(ping)), on_hung_(std::move(on_hung)), timer_(loop) {}

void GuardianMonitor::start(std::chrono::milliseconds delay) {
  const auto begin = Clock::now() + delay;
  if (begin_ && *begin_ <= begin) return;
  begin_ = begin;
  wait_until(begin);
}

void GuardianMonitor::on_pong() {
  if (detector_) detector_->received(Clock::now());
}

void GuardianMonitor::stop() {
  begin_.reset();
  detector_.reset();
  timer_.cancel();
}

void GuardianMonitor::wait_until(Clock::time_point time) {
  timer_.at(time, [this] { tick(); });
}

void GuardianMonitor::tick() {
  const auto now = Clock::now();
  if (!detector_) detector_.emplace(times_, now);
  if (!detector_->poll(now)) {
    stop();
    return on_hung_();
  }
  ping_();
  if (begin_) wait_until(now + times_.heartbeat_interval);  // ping_() may stop it
}

}  // namespace fleet
