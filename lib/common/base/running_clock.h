// Limits of time that a process has run. A process that was suspended (SIGSTOP, a batch system, a
// virtual machine) or starved cannot blame others for that time, and did not use it. The classes
// are pure: the time is an argument. Not thread-safe.
#pragma once

#include <algorithm>
#include <chrono>

namespace fleet {

// A clock that stands still while its owner does not look at it.
class RunningClock {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // longest: counts at most between two calls of at(). An owner that waits calls at() that often.
  RunningClock(Time now, Time::duration longest) : last_(now), longest_(longest) {}
  void set_longest(Time::duration longest) { longest_ = longest; }

  // The time of this clock at `now` of the steady clock: at first the same, later less.
  Time at(Time now) {
    const auto passed = std::max(now - last_, Time::duration(0));
    last_ += passed;
    skipped_ += std::max(passed - longest_, Time::duration(0));
    return last_ - skipped_;
  }
  // The steady clock's time when this clock shows `time`, if its owner keeps looking.
  Time steady(Time time) const { return time < Time::max() - skipped_ ? time + skipped_ : time; }
  // The time of this clock at an earlier `steady` time, or less if it has stood still since.
  Time past(Time steady) const { return steady - skipped_; }
  Time::duration skipped() const { return skipped_; }

 private:
  Time last_;
  Time::duration longest_, skipped_{0};
};

// The end of such a limit, for code that waits.
class RunningDeadline {
 public:
  using Time = RunningClock::Time;
  static constexpr std::chrono::milliseconds kLook{1'000};

  // limit: Time::duration::max() for none.
  explicit RunningDeadline(Time::duration limit, Time now = std::chrono::steady_clock::now())
      : clock_(now, kLook * 3 / 2), end_(limit < Time::max() - now ? now + limit : Time::max()) {}
  bool passed(Time now = std::chrono::steady_clock::now()) { return clock_.at(now) >= end_; }
  // How long the process had stood still at the last call of passed().
  Time::duration skipped() const { return clock_.skipped(); }
  // Call passed() again by then.
  Time next_look(Time now = std::chrono::steady_clock::now()) const {
    return std::min(clock_.steady(end_), now + kLook);
  }
  // Until then, for calls that take a limit of their own.
  std::chrono::milliseconds look_for(Time now = std::chrono::steady_clock::now()) const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next_look(now) - now);
    return std::max(left, std::chrono::milliseconds(0));
  }

 private:
  RunningClock clock_;
  Time end_;
};

// A RunningClock of this process, for waits of any thread that look at it at least every
// RunningDeadline::kLook. Thread-safe.
RunningClock::Time running_now();
double running_seconds();  // the same, as a Clock

}  // namespace fleet
