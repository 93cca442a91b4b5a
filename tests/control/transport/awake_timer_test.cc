#include "transport/awake_timer.h"

#include <gtest/gtest.h>

namespace fleet {
namespace {

using namespace std::chrono_literals;

constexpr AwakeDeadline::Time kStart = AwakeDeadline::Time() + 100s;

// Looks at it when it asks for that, `late` after each such moment.
AwakeDeadline::Time reached_at(AwakeDeadline* deadline, std::chrono::milliseconds late) {
  auto now = kStart;
  while (!deadline->reached(now)) now = deadline->next() + late;
  return now;
}

TEST(AwakeDeadline, InTime_IsReachedAfterTheDelay) {
  AwakeDeadline deadline(kStart, 10s);
  EXPECT_EQ(reached_at(&deadline, 0ms), kStart + 10s);
}

TEST(AwakeDeadline, ShortDelay_IsNotLookedAtLater) {
  AwakeDeadline deadline(kStart, 3ms);
  EXPECT_EQ(deadline.next(), kStart + 3ms);
}

TEST(AwakeDeadline, LooksThatAreALittleLate_MoveNothing) {
  AwakeDeadline deadline(kStart, 10s);
  EXPECT_LE(reached_at(&deadline, 700ms), kStart + 11s);
}

TEST(AwakeDeadline, Suspension_DoesNotCount) {
  AwakeDeadline deadline(kStart, 10s);
  EXPECT_FALSE(deadline.reached(kStart + 250ms));
  EXPECT_FALSE(deadline.reached(kStart + 1h));
  EXPECT_FALSE(deadline.reached(kStart + 1h + 250ms));
  auto now = kStart + 1h + 250ms;
  while (!deadline.reached(now)) now = deadline.next();
  EXPECT_EQ(now, kStart + 1h + 9'750ms);
}

TEST(AwakeTimer, Handler_RunsOnceAndMayStartItAgain) {
  EventLoop loop;
  AwakeTimer timer(loop);
  int runs = 0;
  timer.after(1ms, [&] {
    ++runs;
    timer.after(1ms, [&] { ++runs; });
  });
  loop.run();
  EXPECT_EQ(runs, 2);
}

TEST(AwakeTimer, Cancelled_DoesNotRun) {
  EventLoop loop;
  AwakeTimer timer(loop);
  timer.after(1ms, [] { FAIL(); });
  timer.cancel();
  loop.run();
}

}  // namespace
}  // namespace fleet
