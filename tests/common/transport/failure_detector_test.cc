#include "transport/failure_detector.h"

#include <gtest/gtest.h>

namespace fleet {
namespace {

using namespace std::chrono_literals;

constexpr FailureDetector::Time kStart{};

// Polls when the detector asks for it, or `late` after that; when the peer is lost.
FailureDetector::Time lost_at(FailureDetector detector, FailureDetector::Time now,
                              std::chrono::milliseconds late = 0ms) {
  while (detector.poll(now)) now = detector.next_poll(now) + late;
  return now;
}

TEST(FailureDetector, Silence_LostSoonAfterTheLimit) {
  FailureDetector detector({500ms, 3s}, kStart);
  EXPECT_TRUE(detector.poll(kStart + 500ms));
  detector.received(kStart + 600ms);
  const auto lost = lost_at(detector, kStart + 600ms);
  EXPECT_GT(lost, kStart + 3'600ms);
  EXPECT_LE(lost, kStart + 3'700ms);
}

TEST(FailureDetector, MessageThatHadArrived_IsTakenInFirst) {
  FailureDetector detector({500ms, 3s}, kStart);
  for (int i = 1; i <= 6; ++i) EXPECT_TRUE(detector.poll(kStart + i * 500ms));
  detector.received(kStart + 3'010ms);  // by another thread, which had its turn
  EXPECT_TRUE(detector.poll(detector.next_poll(kStart + 3s)));
  EXPECT_GT(lost_at(detector, kStart + 3'100ms), kStart + 6s);
}

TEST(FailureDetector, Suspension_IsNotSilenceOfThePeer) {
  FailureDetector detector({500ms, 3s}, kStart);
  EXPECT_TRUE(detector.poll(kStart + 500ms));
  EXPECT_TRUE(detector.poll(kStart + 1'000ms));
  EXPECT_TRUE(detector.poll(kStart + 60'000ms));  // 1.5 s of silence so far
  const auto lost = lost_at(detector, kStart + 60'500ms);
  EXPECT_GT(lost, kStart + 61'400ms);
  EXPECT_LE(lost, kStart + 61'600ms);  // a peer that stays silent is lost in time
}

// A process that gets a tenth of a core.
TEST(FailureDetector, LatePolls_ExtendTheLimit) {
  const FailureDetector detector({500ms, 3s}, kStart);
  const auto lost = lost_at(detector, kStart, 180ms);
  EXPECT_GE(lost, kStart + 3s + 5 * 180ms);
  EXPECT_LE(lost, kStart + 3s + 9 * 180ms);
}

TEST(FailureDetector, HeartbeatAfterSuspension_RestartsTheSilence) {
  FailureDetector detector({500ms, 3s}, kStart);
  detector.received(kStart + 60'000ms);
  EXPECT_TRUE(detector.poll(kStart + 60'000ms));
  EXPECT_EQ(detector.last_received(), kStart + 60'000ms);
  EXPECT_GT(lost_at(detector, kStart + 60s), kStart + 63s);
}

TEST(FailureDetector, OtherTimes_ApplyFromThenOn) {
  FailureDetector detector({500ms, 3s}, kStart);
  detector.set_times({2s, 6s});
  EXPECT_GT(lost_at(detector, kStart), kStart + 6s);
}

}  // namespace
}  // namespace fleet
