#include "rendezvous/clock_offset.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

namespace fleet {
namespace {

constexpr int64_t kMillisecond = 1'000'000, kSecond = 1'000 * kMillisecond;

TEST(ClockOffset, NothingHeard_IsUnknown) { EXPECT_FALSE(ClockOffset().at(5)); }

TEST(ClockOffset, EvenDelays_GiveTheHostsTime) {
  ClockOffset clock;
  // The host is 100 s ahead, 1 ms each way.
  clock.sample(10 * kSecond, 110 * kSecond + kMillisecond, 10 * kSecond + 2 * kMillisecond);
  const auto estimate = clock.at(10 * kSecond + 5 * kMillisecond);
  ASSERT_TRUE(estimate);
  EXPECT_EQ(estimate->host_ns, 110 * kSecond + 5 * kMillisecond);
  EXPECT_GE(estimate->error_ns, kMillisecond);
  EXPECT_LT(estimate->error_ns, kMillisecond + 10'000);
}

TEST(ClockOffset, QuickestHeartbeat_CountsMost) {
  ClockOffset clock;
  clock.sample(0, -50 * kMillisecond + 100, 200);  // 0.2 us there and back
  for (int64_t i = 1; i < 10; ++i) {
    clock.sample(i * kMillisecond, 0, i * kMillisecond + 90 * kMillisecond);
  }
  EXPECT_EQ(clock.at(10 * kMillisecond)->host_ns, -40 * kMillisecond);
}

TEST(ClockOffset, OldSample_GetsWorseWithTime) {
  ClockOffset clock;
  clock.sample(0, 0, 0);
  EXPECT_EQ(clock.at(100 * kSecond)->error_ns, 100 * kMillisecond);
  clock.sample(100 * kSecond, 100 * kSecond + 5 * kMillisecond, 100 * kSecond + 10 * kMillisecond);
  EXPECT_EQ(clock.at(100 * kSecond + 10 * kMillisecond)->error_ns, 5 * kMillisecond + 5'000);
}

TEST(ClockOffset, SuspendedMachine_IsMeasuredAnew) {
  ClockOffset clock;
  clock.sample(0, 0, 10);
  clock.sample(kSecond, 61 * kSecond, kSecond + 2 * kMillisecond);  // slept for a minute
  EXPECT_EQ(clock.at(2 * kSecond)->host_ns, 62 * kSecond - kMillisecond);
}

TEST(ClockOffset, RandomDelaysAndDrift_StayWithinTheErrorBound) {
  std::mt19937_64 random(7);
  std::exponential_distribution<double> delay(1.0 / static_cast<double>(3 * kMillisecond));
  for (int trial = 0; trial < 50; ++trial) {
    const double drift = 1 + 4e-4 * (trial % 3 - 1);
    const int64_t ahead = static_cast<int64_t>(random() % (1'000 * kSecond)) - 500 * kSecond;
    const auto host = [&](int64_t own) {
      return ahead + static_cast<int64_t>(drift * static_cast<double>(own));
    };
    ClockOffset clock;
    for (int64_t own = 0; own < 60 * kSecond; own += kSecond / 4) {
      const auto there = static_cast<int64_t>(delay(random));
      const auto back = static_cast<int64_t>(delay(random));
      clock.sample(own, host(own + there), own + there + back);
      const int64_t asked = own + 300 * kMillisecond;
      const auto estimate = clock.at(asked);
      ASSERT_TRUE(estimate);
      EXPECT_LE(std::abs(estimate->host_ns - host(asked)), estimate->error_ns + 1'000);
    }
  }
}

}  // namespace
}  // namespace fleet
