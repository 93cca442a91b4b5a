#include "base/running_clock.h"

#include <gtest/gtest.h>

namespace fleet {
namespace {

using namespace std::chrono_literals;

constexpr RunningClock::Time kBegin{};

TEST(RunningClock, OwnerThatLooksInTime_SeesTheSteadyClock) {
  RunningClock clock(kBegin, 500ms);
  for (int i = 1; i <= 100; ++i) EXPECT_EQ(clock.at(kBegin + i * 500ms), kBegin + i * 500ms);
  EXPECT_EQ(clock.skipped(), 0s);
}

TEST(RunningClock, Gap_CountsAsTheLongestLook) {
  RunningClock clock(kBegin, 500ms);
  EXPECT_EQ(clock.at(kBegin + 60s), kBegin + 500ms);
  EXPECT_EQ(clock.at(kBegin + 60s), kBegin + 500ms);
  EXPECT_EQ(clock.at(kBegin + 60'400ms), kBegin + 900ms);
  EXPECT_EQ(clock.steady(kBegin + 1s), kBegin + 60'500ms);
  EXPECT_EQ(clock.past(kBegin + 60'400ms), kBegin + 900ms);
}

// Threads read the steady clock before they take the lock.
TEST(RunningClock, EarlierTime_ChangesNothing) {
  RunningClock clock(kBegin, 500ms);
  clock.at(kBegin + 400ms);
  EXPECT_EQ(clock.at(kBegin + 300ms), kBegin + 400ms);
  EXPECT_EQ(clock.at(kBegin + 500ms), kBegin + 500ms);
}

TEST(RunningClock, NoTime_StaysNone) {
  RunningClock clock(kBegin, 500ms);
  clock.at(kBegin + 60s);
  EXPECT_EQ(clock.steady(RunningClock::Time::max()), RunningClock::Time::max());
}

TEST(RunningDeadline, SuspendedProcess_StillHasItsTime) {
  RunningDeadline deadline(30s, kBegin);
  auto now = kBegin + 10s;
  for (auto at = kBegin; at < now; at += RunningDeadline::kLook) EXPECT_FALSE(deadline.passed(at));
  now += 3600s;
  EXPECT_FALSE(deadline.passed(now));
  int looks = 0;
  while (!deadline.passed(now)) {
    ASSERT_GT(deadline.next_look(now), now);
    now = deadline.next_look(now);
    ++looks;
  }
  EXPECT_GE(looks, 17);
  EXPECT_LE(looks, 20);
}

TEST(RunningDeadline, ShortLimit_PassesOnTimeAndLate) {
  RunningDeadline deadline(20ms, kBegin);
  EXPECT_EQ(deadline.next_look(kBegin), kBegin + 20ms);
  EXPECT_FALSE(deadline.passed(kBegin + 19ms));
  EXPECT_TRUE(deadline.passed(kBegin + 20ms));
  RunningDeadline late(20ms, kBegin);
  EXPECT_TRUE(late.passed(kBegin + 1h));
}

TEST(RunningDeadline, NoLimit_NeverPasses) {
  RunningDeadline deadline(RunningDeadline::Time::duration::max(), kBegin);
  EXPECT_FALSE(deadline.passed(kBegin + 1h));
  EXPECT_EQ(deadline.look_for(kBegin + 1h), RunningDeadline::kLook);
}

TEST(RunningNow, NeverGoesBackAndNeverAhead) {
  const auto first = running_now();
  const auto second = running_now();
  EXPECT_LE(first, second);
  EXPECT_LE(second, std::chrono::steady_clock::now());
}

}  // namespace
}  // namespace fleet
