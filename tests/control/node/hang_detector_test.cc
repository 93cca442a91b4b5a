#include "node/hang_detector.h"

#include <gtest/gtest.h>

namespace fleet {
namespace {

using namespace std::chrono_literals;

struct HangWatchTest : ::testing::Test {
  // Lets time pass with these signs; what the last look says.
  std::chrono::milliseconds pass(std::chrono::milliseconds time, int64_t bytes, double cpu) {
    now += time;
    signs.output += bytes;
    signs.cpu_seconds += cpu;
    return watch.update(signs, now);
  }
  HangDetector watch{10s};
  RankActivity signs;
  HangDetector::Time now = HangDetector::Time() + 100s;
};

TEST_F(HangWatchTest, NoSigns_HangsAtTheTimeoutAndOnce) {
  pass(0s, 0, 0);
  EXPECT_EQ(pass(9s, 0, 0), 0ms);
  EXPECT_EQ(pass(1500ms, 0, 0), 10'500ms);
  EXPECT_EQ(pass(10s, 0, 0), 0ms);
}

// scontrol suspend, docker pause: the guardian and its ranks.
TEST_F(HangWatchTest, Suspension_IsNoTimeWithoutProgress) {
  watch = HangDetector(5s, 1s);
  signs.cpu_seconds = 100;
  pass(0s, 0, 0);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(pass(500ms, 0, 0), 0ms);  // quiet for 3 s
  EXPECT_EQ(pass(3600s, 0, 0), 0ms);
  EXPECT_EQ(pass(500ms, 0, 0), 0ms);
  EXPECT_EQ(pass(500ms, 0, 0), 5s);  // it stays quiet
}

TEST_F(HangWatchTest, SuspendedWhileItComputes_LivesOn) {
  watch = HangDetector(5s, 1s);
  pass(0s, 0, 0);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(pass(30s, 0, 0.2), 0ms);  // most of the time suspended
    EXPECT_EQ(pass(500ms, 0, 0.5), 0ms);
  }
}

TEST_F(HangWatchTest, Output_IsProgress) {
  pass(0s, 0, 0);
  pass(9s, 1, 0);
  EXPECT_EQ(pass(9s, 0, 0), 0ms);
  EXPECT_GT(pass(2s, 0, 0), 0ms);
}

TEST_F(HangWatchTest, CpuTime_IsProgress) {
  pass(0s, 0, 0);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(pass(1s, 0, 0.5), 0ms);
}

TEST_F(HangWatchTest, ChildThatLeavesWithItsCpuTime_DoesNotHideLaterWork) {
  pass(0s, 0, 300);
  EXPECT_EQ(pass(9s, 0, -250), 0ms);
  EXPECT_EQ(pass(9s, 0, 9), 0ms);
  EXPECT_EQ(pass(9s, 0, 9), 0ms);
  EXPECT_GT(pass(11s, 0, 0), 0ms);
}

TEST_F(HangWatchTest, LittleCpuTime_IsNone) {
  pass(0s, 0, 0);
  std::chrono::milliseconds longest{0};
  for (int i = 0; i < 20; ++i) longest = std::max(longest, pass(1s, 0, 0.005));
  EXPECT_GE(longest, 10s);
}

TEST_F(HangWatchTest, RareBursts_AreProgress) {
  pass(0s, 0, 0);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(pass(8s, 0, 0), 0ms);
    EXPECT_EQ(pass(1s, 0, 0.9), 0ms);
  }
}

TEST_F(HangWatchTest, RankThatCountsSteps_HangsWithoutSteps) {
  signs.ticks = 7;
  pass(0s, 0, 0);
  EXPECT_EQ(pass(9s, 100, 9), 0ms);
  EXPECT_EQ(pass(2s, 100, 2), 11'000ms);
}

TEST_F(HangWatchTest, Steps_AreProgress) {
  for (int i = 0; i < 10; ++i) {
    ++signs.ticks;
    EXPECT_EQ(pass(9s, 0, 0), 0ms);
  }
}

TEST_F(HangWatchTest, RankThatStopsCounting_IsJudgedByWhatIsSeen) {
  signs.ticks = 7;
  pass(0s, 0, 0);
  signs.ticks = 0;  // it ends
  EXPECT_EQ(pass(9s, 0, 0), 0ms);
  EXPECT_EQ(pass(9s, 100, 0), 0ms);
  EXPECT_EQ(pass(9s, 0, 9), 0ms);
  EXPECT_GT(pass(11s, 0, 0), 0ms);
}

TEST_F(HangWatchTest, RankThatCountsSteps_IsNotBlamedForASuspensionEither) {
  watch = HangDetector(10s, 4s);
  signs.ticks = 7;
  pass(0s, 0, 0);
  EXPECT_EQ(pass(60s, 0, 0), 0ms);  // counts as 4 s
  EXPECT_EQ(pass(3s, 0, 0), 0ms);
  EXPECT_EQ(pass(3s, 0, 0), 10'000ms);
}

}  // namespace
}  // namespace fleet
