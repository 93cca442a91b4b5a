#include <gtest/gtest.h>

#include "rendezvous/job_nodes.h"

namespace fleet {
namespace {

using namespace std::chrono_literals;

TEST(HeartbeatIntervals, SmallJob_AsAskedFor) {
  const JobTimes times = heartbeat_intervals_for(999, {});
  EXPECT_EQ(times.heartbeat_interval, 500ms);
  EXPECT_EQ(times.max_silence, 3s);
  EXPECT_EQ(times.startup_max_silence, 0s);
}

TEST(HeartbeatIntervals, LargeJob_LooksSeldomAtFirst) {
  const JobTimes times = heartbeat_intervals_for(kLargeJob, {});
  EXPECT_EQ(times.max_silence, 3s);
  EXPECT_EQ(times.startup_max_silence, 30s);
  EXPECT_LT(3 * times.startup_heartbeat_interval, times.startup_max_silence);
  EXPECT_EQ(times.startup_time, 5s);
}

TEST(HeartbeatIntervals, SilenceOf3Seconds_UpTo8000Nodes) {
  EXPECT_EQ(heartbeat_intervals_for(8'000, {}).max_silence, 3s);
  const JobTimes times = heartbeat_intervals_for(12'500, {});
  EXPECT_EQ(times.heartbeat_interval, 1562ms);
  EXPECT_EQ(times.max_silence, 4686ms);
  EXPECT_EQ(times.startup_time, 12'500ms);
}

TEST(HeartbeatIntervals, MoreSilenceAskedFor_Kept) {
  JobTimes asked;
  asked.max_silence = 60s;
  EXPECT_EQ(heartbeat_intervals_for(12'500, asked).max_silence, 60s);
  EXPECT_EQ(heartbeat_intervals_for(12'500, asked).startup_max_silence, 60s);
}

}  // namespace
}  // namespace fleet
