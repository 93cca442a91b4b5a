// A rank that hangs is found, looked at and named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "base/text.h"
#include "tests/control/launch/jobs/fleetrun_process.h"
#include "tests/control/launch/jobs/verdict.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Hang : ::testing::Test {
  // `ranks` ranks that print something again and again.
  void start(int ranks, const std::string& options) {
    const std::string script =
        "echo $$ >pid.$RANK; : >ready.$RANK; while :; do echo on; sleep 0.05; done";
    fleetrun = std::make_unique<Fleetrun>(
        job, "run",
        std::vector<std::string>{"--nproc_per_node=" + std::to_string(ranks), options, "sh", "-c",
                                 script});
    for (int rank = 0; rank < ranks; ++rank) job.wait_for("ready." + std::to_string(rank));
  }
  pid_t rank_pid(int rank) {
    long long pid = 0;
    EXPECT_TRUE(parse_int(trim(job.read("pid." + std::to_string(rank))), &pid));
    return static_cast<pid_t>(pid);
  }
  JobFolder job;
  std::unique_ptr<Fleetrun> fleetrun;
};

TEST_F(Hang, StoppedRank_IsNamedWithEveryRanksStack) {
  start(4, "--hang_timeout=1");
  ::kill(rank_pid(2), SIGSTOP);
  EXPECT_EQ(fleetrun->wait(), 115) << fleetrun->output();
  EXPECT_THAT(fleetrun->output(),
              HasSubstr("look at rank 2 (local rank 2) on node 0 (127.0.0.1): it is stopped"));
  const auto verdict = verdict_in(job);
  EXPECT_EQ(verdict["verdict"], "hang");
  EXPECT_EQ(verdict["exit_code"], 115);
  if (::access("/usr/bin/gdb", X_OK) == 0 || ::access("/usr/bin/eu-stack", X_OK) == 0) {
    EXPECT_THAT(fleetrun->output(), HasSubstr("#0 "));
    EXPECT_THAT(job.read("log/workerlog.1.stack"), HasSubstr("#0"));
  }
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

TEST_F(Hang, RanksThatGetOn_AreLeftAlone) {
  start(2, "--hang_timeout=2");
  // Twice as long as that, at least.
  while (split(job.read("log/workerlog.0"), '\n').size() < 80 &&
         fleetrun->output().find("hangs") == std::string::npos) {
    ::usleep(10'000);
  }
  fleetrun->signal(SIGTERM);
  EXPECT_EQ(fleetrun->wait(), 128 + SIGTERM);
  EXPECT_EQ(verdict_in(job)["verdict"], "stopped");
}

}  // namespace
}  // namespace fleet
