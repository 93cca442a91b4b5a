#include <gtest/gtest.h>

#include "rendezvous/job_nodes.h"

namespace fleet {
namespace {

using namespace std::chrono_literals;

// Of a --heartbeat_timeout of 15 s.
JobTimes asked() {
  JobTimes times;
  times.heartbeat_interval = heartbeat_interval_for(15s);
  times.max_silence = max_silence_for(15s);
  return times;
}

TEST(HeartbeatIntervals, SmallJob_AsAskedFor) {
  const JobTimes times = heartbeat_intervals_for(100, {});
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

TEST(HeartbeatIntervals, AnySize_AtMost700ASecond) {
  for (const int nnodes : {2, 64, 500, 999, 1'000, 2'500, 5'000, 12'500, 100'000}) {
    const JobTimes times = heartbeat_intervals_for(nnodes, asked());
    const int of_node = nnodes < kLargeJob ? 3 : 1;  // two copies of a datagram
    EXPECT_LE(nnodes * of_node * 1s, 700 * times.heartbeat_interval) << nnodes;
    EXPECT_LE(nnodes * 1s,
              700 * std::max(times.startup_heartbeat_interval, times.heartbeat_interval))
        << nnodes;
    EXPECT_GE(times.max_silence, times.heartbeat_interval + asked().max_silence / 2) << nnodes;
  }
}

// With a moment for the host's own polls.
TEST(HeartbeatIntervals, FrozenNode_IsNamedWithin15SecondsUpTo5000Nodes) {
  for (const int nnodes : {2, 999, 1'000, 2'500, 5'000}) {
    EXPECT_LE(heartbeat_intervals_for(nnodes, asked()).max_silence, 14'200ms) << nnodes;
  }
  const JobTimes times = heartbeat_intervals_for(12'500, asked());
  EXPECT_LE(times.max_silence, 29s);
  EXPECT_LE(times.startup_max_silence, 30s);
}

TEST(HeartbeatIntervals, MoreSilenceAskedFor_Kept) {
  JobTimes asked;
  asked.max_silence = 60s;
  EXPECT_EQ(heartbeat_intervals_for(12'500, asked).max_silence, 60s);
  EXPECT_EQ(heartbeat_intervals_for(12'500, asked).startup_max_silence, 60s);
}

}  // namespace
}  // namespace fleet
