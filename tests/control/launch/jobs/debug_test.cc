// fleetrun debug, on jobs that run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <memory>

#include "tests/control/launch/jobs/fleetrun_process.h"
#include "tests/control/launch/jobs/verdict.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST(Debug, RankThatWaits_RunsInTheForegroundAndItsCodeIsTheRanks) {
  JobFolder job;
  Fleetrun fleetrun(job, "job",
                    {"--nproc_per_node=2", "--debug_rank=1", "sh", "-c",
                     ": >ran.$RANK; echo rank $RANK of $WORLD_SIZE on $OMP_NUM_THREADS; "
                     "test $RANK = 0 || exit 7; while :; do sleep 0.01; done"});
  job.wait_for("ran.0");
  while (job.read("log/workerlog.1").find("waits for its program") == std::string::npos) {
    ::usleep(1000);
  }
  Fleetrun debug(job, "debug", {"debug", "--rank=1", "--", "env", "MARK=x"});
  EXPECT_EQ(debug.wait(), 7) << debug.output();
  EXPECT_EQ(fleetrun.wait(), 7);
  EXPECT_THAT(fleetrun.output(), HasSubstr("rank 1 waits for "));
  EXPECT_EQ(verdict_in(job)["rank"]["rank"], 1);
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

// The launcher records a rank a moment after its start.
void wait_for_record(JobFolder& job, const std::string& text) {
  for (int tries = 0; tries < 3000; ++tries) {
    Fleetrun status(job, "status", {"status", "default"});
    if (status.wait() == 0 && status.output().find(text) != std::string::npos) return;
    ::usleep(20'000);
  }
  ADD_FAILURE() << "fleetrun status does not show '" << text << "'";
}

TEST(Debug, RunningRank_SecondOneHasItsEnvironmentAndFolder) {
  JobFolder job;
  Fleetrun fleetrun(job, "job",
                    {"--nproc_per_node=2", "sh", "-c",
                     "test -e second && { pwd; echo $RANK; exit 0; }; : >ran.$RANK; "
                     "while ! test -e over; do sleep 0.01; done"});
  job.wait_for("ran.0");
  job.wait_for("ran.1");
  wait_for_record(job, "rank 1  pid");
  Fleetrun mark(job, "mark",
                {"debug", "--rank=1", "--", "sh", "-c",
                 "pwd; echo $RANK of $WORLD_SIZE; echo \"$@\"; : >second", "wrapper"});
  EXPECT_EQ(mark.wait(), 0) << mark.output();
  EXPECT_THAT(mark.output(), AllOf(HasSubstr("rank 1 already runs, as pid"), HasSubstr(job.path()),
                                   HasSubstr("1 of 2\n"), HasSubstr("test -e second")));
  std::ofstream(job.path() + "/over").flush();
  EXPECT_EQ(fleetrun.wait(), 0) << fleetrun.output();
}

TEST(Debug, Attach_GetsThePid) {
  JobFolder job;
  Fleetrun fleetrun(job, "job", {"sh", "-c", "echo $$ >pid; : >ran; while :; do sleep 0.01; done"});
  job.wait_for("ran");
  wait_for_record(job, "rank 0  pid");
  Fleetrun attach(job, "attach", {"debug", "--rank=0", "--attach", "--", "echo", "pid:"});
  EXPECT_EQ(attach.wait(), 0) << attach.output();
  EXPECT_EQ(attach.output(), "pid: " + job.read("pid"));
  fleetrun.signal(SIGTERM);
  EXPECT_EQ(fleetrun.wait(), 143);
}

TEST(Debug, RankThatIsNotThere_Usage) {
  JobFolder job;
  Fleetrun debug(job, "debug", {"debug", "--rank=3"});
  EXPECT_EQ(debug.wait(), 2);
  EXPECT_THAT(debug.output(), StartsWith("fleetrun: rank 3: "));
  Fleetrun start(job, "start", {"--debug_rank=4", "true"});
  EXPECT_EQ(start.wait(), 2);
  EXPECT_THAT(start.output(), HasSubstr("--debug_rank: "));
}

}  // namespace
}  // namespace fleet
