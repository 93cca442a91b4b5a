#include "diagnosis/rank_times.h"

#include <gtest/gtest.h>

namespace fleet {
namespace {

constexpr int64_t kMs = 1'000'000;

// After so many steps of 100 ms, 20 ms of which wait for input, on 2 cores that are busy for half
// of the time.
RankPoint after(int64_t steps) {
  RankPoint point;
  point.steps.set_rank(3);
  point.steps.set_steps(steps);
  point.steps.set_step_at_ns(steps * 100 * kMs);
  point.steps.set_step_ns(steps * 100 * kMs);
  point.steps.set_input_ns(steps * 20 * kMs);
  point.usage.set_cores(2);
  point.usage.set_at_ns(steps * 100 * kMs);
  point.usage.set_cpu_ms(steps * 100);
  point.usage.set_busy_ms(steps * 100);
  point.usage.set_ours_ms(steps * 75);
  return point;
}

TEST(RankTimes, TwoReports_AreDividedByTheStepsBetween) {
  const auto times = rank_times(after(100), after(200));
  ASSERT_TRUE(times);
  EXPECT_EQ(times->rank, 3);
  EXPECT_DOUBLE_EQ(times->step, 100 * kMs);
  EXPECT_DOUBLE_EQ(times->input, 20 * kMs);
  EXPECT_FALSE(times->exposed);
  EXPECT_DOUBLE_EQ(times->own(), 100 * kMs);
  EXPECT_DOUBLE_EQ(times->cpu, 100 * kMs);
  EXPECT_DOUBLE_EQ(*times->others, 0.25);
}

TEST(RankTimes, ShortPeriod_IsNotMeasured) {
  EXPECT_FALSE(rank_times(after(100), after(104)));  // steps
  EXPECT_FALSE(rank_times(after(100), after(149)));  // time
  EXPECT_TRUE(rank_times(after(100), after(150)));
}

TEST(RankTimes, QuotaThatStopsThreads_Throttles) {
  RankPoint now = after(200);
  now.usage.set_quota(1);
  now.usage.set_delayed_ns(5'000 * kMs);
  now.usage.set_throttled_ns(400 * kMs);
  EXPECT_FALSE(rank_times(after(100), now)->throttled);
  now.usage.set_throttled_ns(500 * kMs);
  const auto times = rank_times(after(100), now);
  EXPECT_TRUE(times->throttled);
  EXPECT_DOUBLE_EQ(times->delayed, 50 * kMs);
  EXPECT_FALSE(times->has_its_cores());
}

TEST(RankTimes, Cores_AreItsOwnIfOthersUseFewOfThem) {
  RankTimes times = *rank_times(after(100), after(200));
  EXPECT_FALSE(times.has_its_cores());
  times.others = 0.05;
  EXPECT_TRUE(times.has_its_cores());
  times.others.reset();
  EXPECT_FALSE(times.has_its_cores());  // it gets half of them
  times.cpu = 160 * kMs;
  EXPECT_TRUE(times.has_its_cores());
}

}  // namespace
}  // namespace fleet
