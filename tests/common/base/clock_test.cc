#include "base/clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <thread>

namespace fleet {
namespace {

TEST(FormatDuration, Seconds_AreReadable) {
  EXPECT_EQ(format_duration(0), "0:00");
  EXPECT_EQ(format_duration(7.4), "0:07");
  EXPECT_EQ(format_duration(59.6), "1:00");
  EXPECT_EQ(format_duration(754), "12:34");
  EXPECT_EQ(format_duration(3723), "1:02:03");
  EXPECT_EQ(format_duration(2 * 86400 + 11045), "2d 03:04:05");
}

TEST(FormatDuration, UnknownTime_IsDashes) {
  EXPECT_EQ(format_duration(-1), "-:--");
  EXPECT_EQ(format_duration(std::numeric_limits<double>::quiet_NaN()), "-:--");
  EXPECT_EQ(format_duration(std::numeric_limits<double>::infinity()), "-:--");
}

TEST(SecondsText, Time_IsInSeconds) {
  EXPECT_EQ(seconds_text(std::chrono::seconds(30)), "30 s");
  EXPECT_EQ(seconds_text(std::chrono::milliseconds(2750)), "2.75 s");
}

TEST(MonotonicSeconds, CountsTheTimeThatPasses) {
  const double first = monotonic_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_GE(monotonic_seconds() - first, 0.002);
}

}  // namespace
}  // namespace fleet
