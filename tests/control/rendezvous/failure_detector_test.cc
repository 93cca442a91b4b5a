#include "rendezvous/failure_detector.h"

#include <gtest/gtest.h>

namespace fleet {
namespace {

using namespace std::chrono_literals;

TEST(FailureDetector, Suspension_IsNotSilenceOfThePeer) {
  const FailureDetector::Time start{};
  FailureDetector detector({500ms, 3s}, start);
  EXPECT_TRUE(detector.poll(start + 500ms));
  detector.received(start + 600ms);
  for (int i = 2; i <= 7; ++i) EXPECT_TRUE(detector.poll(start + i * 500ms));
  EXPECT_FALSE(detector.poll(start + 4'000ms));
  // After a sleep of this process the other gets its time again.
  EXPECT_TRUE(detector.poll(start + 60'000ms));
  EXPECT_TRUE(detector.poll(start + 60'500ms));
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
