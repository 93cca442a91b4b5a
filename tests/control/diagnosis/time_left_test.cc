#include <gtest/gtest.h>

#include "diagnosis/live_table.h"

namespace fleet {
namespace {

using namespace std::chrono_literals;

const TimeLeft::Time kBegin = TimeLeft::Time() + 1000s;

TEST(TimeLeft, OneStep_SaysNothing) {
  TimeLeft left;
  EXPECT_FALSE(left.seconds(100));
  left.update(1, kBegin);
  EXPECT_FALSE(left.seconds(100));
}

TEST(TimeLeft, UnknownTarget_SaysNothing) {
  TimeLeft left;
  left.update(1, kBegin);
  left.update(2, kBegin + 1s);
  EXPECT_FALSE(left.seconds(0));
  EXPECT_TRUE(left.seconds(10));
}

TEST(TimeLeft, EvenSteps_TakeTheirTime) {
  TimeLeft left;
  for (int step = 1; step <= 50; ++step) left.update(step, kBegin + step * 2s);
  EXPECT_DOUBLE_EQ(*left.seconds(100), 100);
  EXPECT_DOUBLE_EQ(*left.seconds(50), 0);
  EXPECT_DOUBLE_EQ(*left.seconds(40), 0);  // it went on beyond
}

// Four minutes at 1 s a step, then ten at 3 s: the slow ones count.
TEST(TimeLeft, OldSteps_AreForgotten) {
  TimeLeft left;
  TimeLeft::Time now = kBegin;
  for (int step = 1; step <= 440; ++step) left.update(step, now += step <= 240 ? 1s : 3s);
  EXPECT_NEAR(*left.seconds(540), 300, 1);
}

TEST(TimeLeft, PauseBetweenSteps_CountsOnceTheNextOneIsDone) {
  TimeLeft left;
  left.update(1, kBegin);
  left.update(2, kBegin + 1s);
  left.update(2, kBegin + 60s);  // no step
  EXPECT_DOUBLE_EQ(*left.seconds(12), 10);
  left.update(3, kBegin + 61s);
  EXPECT_NEAR(*left.seconds(13), 305, 1);
}

TEST(TimeLeft, LowerStep_BeginsAnew) {
  TimeLeft left;
  left.update(100, kBegin);
  left.update(101, kBegin + 1s);
  left.update(50, kBegin + 100s);
  EXPECT_FALSE(left.seconds(200));
  left.update(51, kBegin + 105s);
  EXPECT_DOUBLE_EQ(*left.seconds(61), 50);
}

}  // namespace
}  // namespace fleet
