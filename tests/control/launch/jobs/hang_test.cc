// A rank that hangs is found, looked at and named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "base/text.h"
#include "tests/control/launch/jobs/fleetrun_process.h"
#include "tests/control/launch/jobs/verdict.h"
#include "tests/test_paths.h"

namespace fleet {
namespace {

using ::testing::AllOf;
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
  // Ranks whose last calls of collectives are these, by rank (launch_rank_helper).
  void start_with_calls(const std::vector<std::string>& calls) {
    std::string script;
    for (size_t rank = 0; rank < calls.size(); ++rank) {
      script += "[ $RANK = " + std::to_string(rank) + " ] && exec " + program_folder() +
                "/launch_rank_helper calls " + calls[rank] + "; ";
    }
    fleetrun = std::make_unique<Fleetrun>(
        job, "run",
        std::vector<std::string>{"--nproc_per_node=" + std::to_string(calls.size()),
                                 "--hang_timeout=2", "sh", "-c", script});
    EXPECT_EQ(fleetrun->wait(), 115) << fleetrun->output();
  }
  std::unique_ptr<Fleetrun> fleetrun;
};

const std::string kDone = "all_reduce 4096 bucket_0 done ",
                  kIn = "all_reduce 26214400 bucket_1 started";

TEST_F(Hang, RankOfOurEngineHasNotEnteredACollective_IsNamedWithIt) {
  start_with_calls({kDone + kIn, kDone + kIn, kDone, kDone + kIn});
  const std::string line =
      "rank 2 has not entered all_reduce #2 (bucket_1, 25 MiB) of group data parallel; 3 wait in "
      "it";
  EXPECT_THAT(fleetrun->output(), HasSubstr("\n  " + line + "\n"));
  EXPECT_THAT(fleetrun->output(), HasSubstr("look at rank 2"));
  const auto verdict = verdict_in(job);
  ASSERT_EQ(verdict["waits"].size(), 1u) << verdict.dump();
  const auto wait = verdict["waits"][0];
  EXPECT_EQ(wait["text"], line);
  EXPECT_EQ(wait["kind"], "missing");
  EXPECT_EQ(wait["group"], "data parallel");
  EXPECT_EQ(wait["operation"], "all_reduce");
  EXPECT_EQ(wait["sequence"], 2);
  EXPECT_EQ(wait["for"], "bucket_1");
  EXPECT_EQ(wait["bytes"], 26214400);
  EXPECT_EQ(wait["missing"], nlohmann::json({2}));
  EXPECT_EQ(wait["waiting"], nlohmann::json({0, 1, 3}));
  EXPECT_EQ(verdict["rank"]["rank"], 2);
}

TEST_F(Hang, RankThatTheOthersWaitForHasEnded_IsNamedThoughItsProcessIsGone) {
  start_with_calls({kDone + kIn, kDone + "end", kDone + kIn});
  EXPECT_THAT(fleetrun->output(), AllOf(HasSubstr("rank 1 has not entered all_reduce #2"),
                                        HasSubstr("the process of rank 1 is gone")));
  EXPECT_EQ(verdict_in(job)["rank"]["rank"], 1);
}

// The rank's own process is a shell that lives on, as a wrapper script does.
TEST_F(Hang, ProcessThatCommunicatesIsKilled_ItsLastCallsAreRead) {
  const std::string helper = program_folder() + "/launch_rank_helper calls ";
  fleetrun = std::make_unique<Fleetrun>(
      job, "run",
      std::vector<std::string>{"--nproc_per_node=3", "--hang_timeout=3", "sh", "-c",
                               "[ $RANK = 1 ] || exec " + helper + kDone + kIn + "; " + helper +
                                   kDone + "& echo $! >pid; mv pid pid.1; wait; sleep 600"});
  job.wait_for("pid.1");
  while (job.read("log/workerlog.1").find("called") == std::string::npos) ::usleep(10'000);
  ::kill(rank_pid(1), SIGKILL);
  EXPECT_EQ(fleetrun->wait(), 115) << fleetrun->output();
  EXPECT_THAT(fleetrun->output(), AllOf(HasSubstr("rank 1 has not entered all_reduce #2"),
                                        HasSubstr("the process of rank 1 is gone")));
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

TEST_F(Hang, RanksInDifferentCallsOfANumber_AreNamed) {
  start_with_calls({kDone + kIn, kDone + "broadcast 4096 weights started", kDone + kIn});
  EXPECT_THAT(fleetrun->output(), AllOf(HasSubstr("rank 1 is in broadcast #2"),
                                        HasSubstr("the others in all_reduce #2")));
  EXPECT_EQ(verdict_in(job)["waits"][0]["kind"], "mismatch");
  EXPECT_EQ(verdict_in(job)["rank"]["rank"], 1);
}

TEST_F(Hang, StoppedRank_IsNamedWithEveryRanksStack) {
  start(4, "--hang_timeout=1");
  ::kill(rank_pid(2), SIGSTOP);
  EXPECT_EQ(fleetrun->wait(), 115) << fleetrun->output();
  EXPECT_THAT(fleetrun->output(), AllOf(HasSubstr("look at rank 2"), HasSubstr("it is stopped")));
  const auto verdict = verdict_in(job);
  EXPECT_EQ(verdict["verdict"], "hang");
  EXPECT_EQ(verdict["exit_code"], 115);
  if (::access("/usr/bin/gdb", X_OK) == 0 || ::access("/usr/bin/eu-stack", X_OK) == 0) {
    EXPECT_THAT(fleetrun->output(), HasSubstr("#0 "));
    EXPECT_THAT(job.read("log/workerlog.1.stack"), HasSubstr("#0"));
  }
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

// An exit hook that waits for the others keeps the process alive.
TEST_F(Hang, RankThatHasPrintedAnException_IsNamedWithIt) {
  const std::string script =
      "[ $RANK = 1 ] && printf 'Traceback (most recent call last):\\n  File \"a.py\", line 1\\n"
      "ValueError: label 1000\\n'; exec sleep 1000";
  fleetrun = std::make_unique<Fleetrun>(
      job, "run",
      std::vector<std::string>{"--nproc_per_node=2", "--hang_timeout=2", "sh", "-c", script});
  EXPECT_EQ(fleetrun->wait(), 115) << fleetrun->output();
  EXPECT_THAT(fleetrun->output(), HasSubstr("look at rank 1"));
  const auto verdict = verdict_in(job);
  EXPECT_EQ(verdict["rank"]["rank"], 1);
  ASSERT_EQ(verdict["endings"].size(), 1u) << verdict.dump();
  EXPECT_EQ(verdict["endings"][0]["error"], "ValueError: label 1000");
  EXPECT_EQ(verdict["endings"][0]["ended"], false);
}

TEST_F(Hang, RankThatHasEndedWithZero_IsNamedWithItsLastError) {
  const std::string script =
      "[ $RANK = 1 ] && { echo 'ERROR caught: bad label' >&2; exit 0; }; exec sleep 1000";
  fleetrun = std::make_unique<Fleetrun>(
      job, "run",
      std::vector<std::string>{"--nproc_per_node=2", "--hang_timeout=2", "sh", "-c", script});
  EXPECT_EQ(fleetrun->wait(), 115) << fleetrun->output();
  EXPECT_THAT(fleetrun->output(), HasSubstr("rank 1 has ended with 0"));
  const auto verdict = verdict_in(job);
  EXPECT_EQ(verdict["rank"]["rank"], 1);
  ASSERT_EQ(verdict["endings"].size(), 1u) << verdict.dump();
  EXPECT_EQ(verdict["endings"][0]["error"], "ERROR caught: bad label");
  EXPECT_EQ(verdict["endings"][0]["ended"], true);
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
