#include "transport/failure_detector.h"

#include <gtest/gtest.h>

namespace fleet {
namespace {

using namespace std::chrono_literals;

TEST(FailureDetector, Silence_LostAtTheDeadline) {
  const FailureDetector::Time start{};
  FailureDetector detector({500ms, 3s}, start);
  EXPECT_TRUE(detector.poll(start + 500ms));
  detector.received(start + 600ms);
  for (int i = 2; i <= 7; ++i) EXPECT_TRUE(detector.poll(start + i * 500ms));
  EXPECT_EQ(detector.deadline(), start + 3'600ms);
  EXPECT_FALSE(detector.poll(start + 4'000ms));
}

TEST(FailureDetector, Suspension_IsNotSilenceOfThePeer) {
  const FailureDetector::Time start{};
  FailureDetector detector({500ms, 3s}, start);
  EXPECT_TRUE(detector.poll(start + 500ms));
  EXPECT_TRUE(detector.poll(start + 1'000ms));
  EXPECT_TRUE(detector.poll(start + 60'000ms));  // one second of silence so far
  EXPECT_TRUE(detector.poll(start + 61'500ms));
  EXPECT_FALSE(detector.poll(start + 62'000ms));  // a peer that stays silent is lost in time
}

TEST(FailureDetector, HeartbeatAfterSuspension_RestartsTheSilence) {
  const FailureDetector::Time start{};
  FailureDetector detector({500ms, 3s}, start);
  detector.received(start + 60'000ms);
  EXPECT_TRUE(detector.poll(start + 60'000ms));
  EXPECT_EQ(detector.last_received(), start + 60'000ms);
}

TEST(SuspensionDetector, OnlyPollsThatAreLate_Count) {
  const SuspensionDetector::Time start{};
  SuspensionDetector detector(start);
  EXPECT_EQ(detector.poll(start + 1s, 1s), 0s);
  EXPECT_EQ(detector.poll(start + 3s, 1s), 2s);
  EXPECT_EQ(detector.poll(start + 3s, 1s), 0s);
}

TEST(FailureDetector, OtherTimes_ApplyFromThenOn) {
  const FailureDetector::Time start{};
  FailureDetector detector({500ms, 3s}, start);
  detector.set_times({2s, 6s});
  EXPECT_TRUE(detector.poll(start + 3s));
  EXPECT_TRUE(detector.poll(start + 5s));
  EXPECT_FALSE(detector.poll(start + 6s));
}

}  // namespace
}  // namespace fleet
