#include "node/realtime_history.h"

#include <gtest/gtest.h>

namespace fleet {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kEpoch = 1'760'000'000 * kSecond;  // the realtime clock at monotonic 0

// A machine whose realtime clock a test sets.
struct Clocks {
  void pass(int64_t seconds) {
    for (int64_t i = 0; i < seconds; ++i) {
      now += kSecond;
      history.sample(now - 1'000, realtime(), now + 1'000);
    }
  }
  int64_t realtime() const { return now + offset; }
  std::optional<MonotonicTime> monotonic(int64_t realtime_ns) const {
    std::vector<const wire::RealtimeOffset*> all;
    for (const auto& one : history.offsets()) all.push_back(&one);
    return to_monotonic(all, realtime_ns);
  }

  int64_t now = 100 * kSecond, offset = kEpoch;
  RealtimeHistory history;
};

TEST(RealtimeHistory, NothingKnown_SaysNothing) { EXPECT_FALSE(Clocks().monotonic(kEpoch)); }

TEST(RealtimeHistory, SteadyClock_IsOneDifference) {
  Clocks clocks;
  clocks.pass(1'000);
  EXPECT_EQ(clocks.history.offsets().size(), 1u);
  const auto then = clocks.monotonic(kEpoch + 700 * kSecond);
  ASSERT_TRUE(then);
  EXPECT_EQ(then->ns, 700 * kSecond);
  EXPECT_LT(then->error_ns, 1'000'000);
  EXPECT_EQ(clocks.monotonic(kEpoch + 50 * kSecond)->ns, 50 * kSecond);  // before the first
}

TEST(RealtimeHistory, ClockSetForward_TimesOnBothSidesAreRight) {
  Clocks clocks;
  clocks.pass(100);
  const int64_t before = clocks.realtime() - 10 * kSecond, own_before = clocks.now - 10 * kSecond;
  clocks.offset += 3'600 * kSecond;
  clocks.pass(100);
  EXPECT_EQ(clocks.history.offsets().size(), 2u);
  EXPECT_EQ(clocks.monotonic(before)->ns, own_before);
  EXPECT_EQ(clocks.monotonic(clocks.realtime())->ns, clocks.now);
  // It never showed this time.
  const auto never = clocks.monotonic(before + 1'800 * kSecond);
  ASSERT_TRUE(never);
  EXPECT_NEAR(static_cast<double>(never->ns), 200.0 * kSecond, 2.0 * kSecond);
  EXPECT_GE(never->error_ns, kSecond);
}

TEST(RealtimeHistory, ClockSetBack_TheLaterOfTwoTimes) {
  Clocks clocks;
  clocks.pass(100);
  const int64_t early = clocks.realtime() - 90 * kSecond, own_early = clocks.now - 90 * kSecond;
  clocks.offset -= 60 * kSecond;
  clocks.pass(100);
  EXPECT_EQ(clocks.monotonic(early)->ns, own_early);  // shown once
  EXPECT_EQ(clocks.monotonic(clocks.realtime() - 50 * kSecond)->ns, clocks.now - 50 * kSecond);
}

TEST(RealtimeHistory, SlewedClock_StaysWithinTheError) {
  Clocks clocks;
  for (int i = 0; i < 2'000; ++i) {
    clocks.offset += 400'000;  // 400 ppm
    clocks.pass(1);
  }
  EXPECT_LE(clocks.history.offsets().size(), 1'000u);
  const auto now = clocks.monotonic(clocks.realtime());
  ASSERT_TRUE(now);
  EXPECT_LE(std::abs(now->ns - clocks.now), now->error_ns + 500'000);
}

}  // namespace
}  // namespace fleet
