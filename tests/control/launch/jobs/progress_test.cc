// Ranks that count their steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "tests/control/launch/jobs/fleetrun_process.h"
#include "tests/test_paths.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(RankProgressOfAJob, NoMoreSteps_IsAHangDespiteOtherActivity) {
  JobFolder job;
  Fleetrun fleetrun(job, "run", {"--hang_timeout=2", "--", kHelper, "steps", "10", "10", "25"});
  EXPECT_EQ(fleetrun.wait(), 115) << fleetrun.output();
  EXPECT_THAT(fleetrun.output(),
              ::testing::AllOf(HasSubstr("rank 0 on node 0"), HasSubstr("step after step 25")));
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

TEST(RankProgressOfAJob, SlowRank_IsNamedOnce) {
  JobFolder job;
  Fleetrun fleetrun(job, "run",
                    {"--nproc_per_node=4", "--", "sh", "-c",
                     "test $RANK = 2 && own=100 || own=40; exec " + kHelper + " steps $own 100"});
  const std::string line = "rank 2 (local rank 2) on node 0 is a straggler: ";
  for (int i = 0; i < 1200 && fleetrun.output().find(line) == std::string::npos; ++i) {
    ::usleep(100'000);
  }
  EXPECT_THAT(fleetrun.output(), HasSubstr(line));
  fleetrun.signal(SIGTERM);
  EXPECT_EQ(fleetrun.wait(), 128 + SIGTERM);
}

}  // namespace
}  // namespace fleet
