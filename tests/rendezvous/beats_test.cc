#include "rendezvous/beats.h"

#include <gtest/gtest.h>

namespace fleet {
namespace {

using namespace std::chrono_literals;

TEST(Beats, SmallJob_AsAskedFor) {
  const JobTimes times = beats_for(999, {});
  EXPECT_EQ(times.beat, 500ms);
  EXPECT_EQ(times.silence, 3s);
  EXPECT_EQ(times.early_silence, 0s);
}

TEST(Beats, LargeJob_LooksSeldomAtFirst) {
  const JobTimes times = beats_for(kLargeJob, {});
  EXPECT_EQ(times.silence, 3s);
  EXPECT_EQ(times.early_silence, 30s);
  EXPECT_LT(3 * times.early_beat, times.early_silence);
  EXPECT_EQ(times.settles_in, 5s);
}

TEST(Beats, SilenceOf3Seconds_UpTo8000Nodes) {
  EXPECT_EQ(beats_for(8'000, {}).silence, 3s);
  const JobTimes times = beats_for(12'500, {});
  EXPECT_EQ(times.beat, 1562ms);
  EXPECT_EQ(times.silence, 4686ms);
  EXPECT_EQ(times.settles_in, 12'500ms);
}

TEST(Beats, MoreSilenceAskedFor_Kept) {
  JobTimes asked;
  asked.silence = 60s;
  EXPECT_EQ(beats_for(12'500, asked).silence, 60s);
  EXPECT_EQ(beats_for(12'500, asked).early_silence, 60s);
}

}  // namespace
}  // namespace fleet
