#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "base/file.h"
#include "base/text.h"
#include "node/job_record.h"
#include "tests/control/launch/jobs/fleetrun_process.h"
#include "tests/control/launch/jobs/verdict.h"
#include "tests/test_paths.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

struct OneNode : ::testing::Test {
  // Runs a script on two ranks to its end.
  int run(const std::string& script, std::vector<std::string> options = {},
          const Fleetrun::Environment& environment = {}) {
    options.insert(options.begin(), "--nproc_per_node=2");
    options.insert(options.end(), {"sh", "-c", script});
    Fleetrun fleetrun(job, "run", options, environment);
    const int code = fleetrun.wait();
    output = fleetrun.output();
    EXPECT_THAT(job.survivors(30), IsEmpty());
    return code;
  }
  JobFolder job;
  std::string output;
};

TEST_F(OneNode, RanksThatSucceed_EndWithZero) {
  EXPECT_EQ(run("echo I am $RANK of $WORLD_SIZE"), 0);
  EXPECT_EQ(job.read("log/workerlog.0"), "I am 0 of 2\n");
  EXPECT_EQ(job.read("log/workerlog.1"), "I am 1 of 2\n");
  const std::vector<std::string> lines = split(output, '\n');
  EXPECT_THAT(lines, Contains("I am 0 of 2"));  // local rank 0 goes to the console
  EXPECT_THAT(lines, Not(Contains("I am 1 of 2")));
}

TEST_F(OneNode, Prints_WhatPaddlePrints) {
  run("true", {"--table=paddle"});
  EXPECT_THAT(output, HasSubstr("Local start 2 processes. First process distributed environment "
                                "info (Only For Debug): \n    +====="));
  EXPECT_THAT(job.read("log/endpoints.log"),
              ::testing::MatchesRegex("PADDLE_TRAINER_ENDPOINTS: \n127.0.0.1:[0-9]+\n"
                                      "127.0.0.1:[0-9]+\n"));
}

TEST_F(OneNode, FailingRank_DecidesTheCodeAndIsNamed) {
  EXPECT_EQ(run("test $RANK = 0 && exec sleep 1000; echo working; echo '  it broke' >&2; exit 7",
                {"--table=paddle"}),
            7);
  EXPECT_THAT(output, HasSubstr("] rank 1 of 2 exited with 7 (log/workerlog.1)\n"
                                "ABORT!!! Out of all 2 trainers, the trainer process with "
                                "rank=[1] was aborted. Please check its log.\n"
                                "  local rank 1 on node 0 (127.0.0.1), after "));
  EXPECT_EQ(verdict_in(job)["rank"]["last_lines"], nlohmann::json({"working", "  it broke"}));
}

TEST_F(OneNode, FailingRank_TheCauseComesFirstAndIsKept) {
  EXPECT_EQ(run("test $RANK = 0 && exec sleep 1000; printf '50%%\\r\\033]0;title\\007100%%\\n'; "
                "echo 'Traceback (most recent call last):'; echo '  File \"t.py\", line 1'; "
                "echo \"KeyError: 'missing_key'\"; exit 1"),
            1);
  const auto rank = verdict_in(job)["rank"];
  EXPECT_EQ(rank["cause"], "KeyError: 'missing_key'");
  EXPECT_EQ(rank["last_lines"][0], "100%");
}

TEST_F(OneNode, RecordedException_IsInTheVerdict) {
  const std::string record =
      R"({"message": {"message": "KeyError: 'missing_key'", "extraInfo": {"py_callstack": )"
      R"("Traceback: here", "timestamp": "1763800000"}}})";
  const std::string script =
      "test $RANK = 0 && exec sleep 1000; echo \"$RECORD\" >$TORCHELASTIC_ERROR_FILE; exit 1";
  EXPECT_EQ(run(script, {}, {{"RECORD", record}}), 1);
  const auto error = verdict_in(job)["rank"]["error"];
  EXPECT_EQ(error["message"], "KeyError: 'missing_key'");
  EXPECT_EQ(error["extraInfo"]["py_callstack"].get<std::string>().substr(0, 15), "Traceback: here");
  EXPECT_EQ(error["timestamp"], 1763800000);
  EXPECT_EQ(run("exit 1"), 1);  // what an earlier job has left does not count
  EXPECT_TRUE(verdict_in(job)["rank"]["error"].is_null());
}

TEST_F(OneNode, RankKilledBySignal_Is128AndTheSignal) {
  EXPECT_EQ(run("test $RANK = 0 && exec sleep 1000; kill -SEGV $$"), 128 + SIGSEGV);
  const auto rank = verdict_in(job)["rank"];
  EXPECT_EQ(rank["rank"], 1);
  EXPECT_EQ(rank["signal"], "SIGSEGV");
}

TEST_F(OneNode, OthersThatFailWhenStopped_AreNotTheCause) {
  EXPECT_EQ(run("trap 'exit 9' TERM; test $RANK = 1 && exit 5; : >ready; while :; do sleep 0.01; "
                "done"),
            5);
  EXPECT_EQ(verdict_in(job)["rank"]["rank"], 1);
}

TEST_F(OneNode, PartOfAShownJob_KeepsItsVerdictButTellsItNot) {
  EXPECT_EQ(run("exit 5", {"--part"}), 5);
  EXPECT_EQ(output.find("ABORT"), std::string::npos) << output;
  EXPECT_EQ(output.find("launch train"), std::string::npos) << output;
  EXPECT_THAT(job.read("log/verdict.json"),
              ContainsRegex("\"text\": \"rank [01] of 2 exited with 5"));
}

TEST_F(OneNode, Verdict_IsKeptWithTheLogs) {
  EXPECT_EQ(run("test $RANK = 0 && exec sleep 1000; echo it broke; exit 7"), 7);
  const auto verdict = verdict_in(job);
  EXPECT_EQ(verdict["exit_code"], 7);
  EXPECT_EQ(verdict["rank"]["rank"], 1);
  EXPECT_EQ(verdict["rank"]["last_lines"], nlohmann::json({"it broke"}));
  EXPECT_EQ(verdict["rank"]["log"], "log/workerlog.1");
  EXPECT_EQ(run("true"), 0);
  EXPECT_EQ(verdict_in(job)["verdict"], "success");
}

TEST_F(OneNode, AtTheEnd_NothingIsLeftAndDebugSaysSo) {
  EXPECT_EQ(run("setsid sleep 1000 &", {"--log_level=DEBUG"}), 0);
  EXPECT_THAT(output, HasSubstr("0 processes left"));
}

TEST_F(OneNode, StubbornRank_IsKilledAfterTheGraceTime) {
  EXPECT_EQ(
      run("trap '' TERM; test $RANK = 1 && exit 5; while :; do sleep 0.01; done", {"--grace=0.1"}),
      5);
}

TEST_F(OneNode, Environment_IsThatOfBothPaddlesAndTorch) {
  EXPECT_EQ(run("env", {"--job_id=night"},
                {{"http_proxy", "http://proxy"}, {"https_proxy", "http://proxy"}, {"KEPT", "yes"}}),
            0);
  const std::string log = job.read("log/workerlog.1");
  for (const char* line :
       {"PADDLE_TRAINER_ID=1\n", "PADDLE_TRAINERS_NUM=2\n", "PADDLE_RANK_IN_NODE=1\n",
        "PADDLE_GLOBAL_RANK=1\n", "PADDLE_LOCAL_SIZE=2\n", "PADDLE_DISTRI_BACKEND=gloo\n",
        "RANK=1\n", "LOCAL_RANK=1\n", "WORLD_SIZE=2\n", "MASTER_ADDR=127.0.0.1\n", "MASTER_PORT=",
        "FLEET_STORE_ADDRESS=unix:/", "FLEET_JOB_ID=night\n", "OMP_NUM_THREADS=", "KEPT=yes\n"}) {
    EXPECT_THAT(log, HasSubstr(line));
  }
  EXPECT_THAT(log, AllOf(HasSubstr("http_proxy=http://proxy"), HasSubstr("https_proxy=")));
}

TEST_F(OneNode, UsersOwnThreads_AreLeftAloneAndNotPinned) {
  EXPECT_EQ(run("echo $OMP_NUM_THREADS; nproc --all", {}, {{"OMP_NUM_THREADS", "77"}}), 0);
  EXPECT_TRUE(job.read("log/workerlog.0").starts_with("77\n"));
}

TEST_F(OneNode, ProgramsArguments_ComeThrough) {
  Fleetrun fleetrun(job, "run", {"sh", "-c", "echo \"$0|$1|$2\"", "--gpus=1", "a b", ""});
  EXPECT_EQ(fleetrun.wait(), 0);
  EXPECT_EQ(job.read("log/workerlog.0"), "--gpus=1|a b|\n");
}

TEST_F(OneNode, Logs_AreAppendedTo) {
  run("echo first");
  run("echo second");
  EXPECT_EQ(job.read("log/workerlog.1"), "first\nsecond\n");
}

TEST_F(OneNode, EndpointAndMasterPorts_AreHeldYetCanBeListenedOn) {
  EXPECT_EQ(run(kHelper + " listen PADDLE_CURRENT_ENDPOINT"), 0) << output;
  EXPECT_EQ(run("test $RANK = 1 || exec " + kHelper + " listen PADDLE_MASTER"), 0) << output;
}

TEST_F(OneNode, Ranks_MeetThroughTheStore) {
  EXPECT_EQ(run("exec " + kHelper + " store"), 0) << output;
  EXPECT_EQ(job.read("log/workerlog.0"), "sum 1\n");
  EXPECT_EQ(job.read("log/workerlog.1"), "sum 1\n");
}

TEST_F(OneNode, DaemonisedChildren_DoNotOutliveTheJob) {
  EXPECT_EQ(run("setsid sh -c 'trap \"\" TERM HUP INT; : >daemon.$RANK; sleep 1000' "
                ">/dev/null 2>&1 </dev/null & while ! test -e daemon.$RANK; do sleep 0.01; done"),
            0);
}

TEST_F(OneNode, ChosenRanks_ShowWithTheirNumber) {
  EXPECT_EQ(run("printf 'I am '; sleep 0.1; echo $RANK; printf end", {"--ranks=all"}), 0);
  EXPECT_THAT(split(output, '\n'),
              IsSupersetOf({"[rank 0] I am 0", "[rank 1] I am 1", "[rank 1] end"}));
  EXPECT_EQ(job.read("log/workerlog.1"), "I am 1\nend");
}

TEST_F(OneNode, ChosenRankThatIsNotThere_IsSaid) {
  EXPECT_EQ(run("true", {"--ranks=1,7-8"}), 0);
  EXPECT_THAT(output, HasSubstr("--ranks lists 7,8"));
}

TEST_F(OneNode, ManyLinesOfSeveralRanks_NoneIsTornOrLost) {
  EXPECT_EQ(run("seq 1 100000", {"--ranks=all"}), 0);
  int next[2] = {1, 1};
  for (const std::string& line : split(output, '\n')) {
    if (!line.starts_with("[rank ")) continue;
    const int rank = line[6] - '0';
    ASSERT_TRUE(rank == 0 || rank == 1) << line;
    ASSERT_EQ(line.substr(9), std::to_string(next[rank]++));
  }
  EXPECT_EQ(next[0], 100'001);
  EXPECT_EQ(next[1], 100'001);
}

TEST_F(OneNode, WholeStandardOutput_ReachesTheConsole) {
  EXPECT_EQ(run("test $RANK = 1 || seq 1 200000"), 0);
  EXPECT_THAT(split(output, '\n'), IsSupersetOf({"1", "100000", "199999", "200000"}));
}

TEST_F(OneNode, ProgramWithoutItsInterpreter_IsNamedWithTheReason) {
  std::ofstream(job.path() + "/broken") << "#!/no/such/interpreter\n";
  std::filesystem::permissions(job.path() + "/broken", std::filesystem::perms::owner_all);
  Fleetrun fleetrun(job, "run", {"./broken"});
  EXPECT_EQ(fleetrun.wait(), 127);
  EXPECT_THAT(fleetrun.output(), AllOf(HasSubstr("cannot execute './broken'"),
                                       HasSubstr("interpreter '/no/such/interpreter'")));
}

// Jobs that run until something happens to them.
struct RunningJob : ::testing::Test {
  // Both ranks make the file ready.N and wait; `on` is what they do first.
  std::unique_ptr<Fleetrun> start(const std::string& on, std::vector<std::string> options = {}) {
    options.insert(options.begin(), "--nproc_per_node=2");
    options.insert(options.end(),
                   {"sh", "-c", on + "; : >ready.$RANK; while :; do sleep 0.01; done"});
    auto fleetrun = std::make_unique<Fleetrun>(job, "run", options);
    job.wait_for("ready.0");
    job.wait_for("ready.1");
    return fleetrun;
  }
  pid_t rank_pid(int rank) {
    long long pid = 0;
    EXPECT_TRUE(parse_int(trim(job.read("pid." + std::to_string(rank))), &pid));
    return static_cast<pid_t>(pid);
  }
  JobFolder job;
};

TEST_F(RunningJob, CtrlC_ReachesEveryRankAndEndsWith130) {
  const auto fleetrun = start("trap 'echo saved; exit 0' INT");
  fleetrun->signal(SIGINT);
  EXPECT_EQ(fleetrun->wait(), 130);
  EXPECT_THAT(job.read("log/workerlog.0"), EndsWith("saved\n"));
  EXPECT_THAT(job.read("log/workerlog.1"), EndsWith("saved\n"));
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

TEST_F(RunningJob, SecondCtrlC_Kills) {
  const auto fleetrun = start("trap '' INT TERM", {"--grace=1000"});
  fleetrun->signal(SIGINT);
  // The first one has arrived when it is confirmed.
  while (fleetrun->output().find("SIGINT") == std::string::npos) ::usleep(1000);
  fleetrun->signal(SIGINT);
  EXPECT_EQ(fleetrun->wait(), 130);
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

// As timeout(1) sends it: to its child, and to the child's process group.
TEST_F(RunningJob, SignalThatIsDeliveredTwice_IsOneStop) {
  for (int round = 0; round < 8; ++round) {
    JobFolder folder;
    Fleetrun fleetrun(folder, "run",
                      {"--grace=1000", "sh", "-c",
                       "trap 'sleep 0.1; echo saved; exit 0' TERM; : >ready; "
                       "while :; do sleep 0.01; done"});
    folder.wait_for("ready");
    fleetrun.signal(SIGTERM);
    fleetrun.signal(SIGTERM);
    EXPECT_EQ(fleetrun.wait(), 128 + SIGTERM);
    EXPECT_THAT(folder.read("log/workerlog.0"), EndsWith("saved\n"));
  }
}

TEST_F(RunningJob, Sigterm_GivesGraceThenKills) {
  const auto fleetrun = start("trap '' TERM", {"--grace=0.1"});
  fleetrun->signal(SIGTERM);
  EXPECT_EQ(fleetrun->wait(), 128 + SIGTERM);
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

TEST_F(RunningJob, LauncherKilled_LeavesNothing) {
  const auto fleetrun = start(
      "setsid sh -c 'trap \"\" TERM HUP; : >daemon.$RANK; while :; do sleep 1; done' & "
      "while ! test -e daemon.$RANK; do sleep 0.01; done");
  EXPECT_GE(job.processes().size(), 6u);  // launcher, guardian, two ranks, two daemons
  fleetrun->signal(SIGKILL);
  EXPECT_EQ(fleetrun->wait(), 128 + SIGKILL);
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

TEST_F(RunningJob, GuardianKilled_LeavesNothingAndSaysSo) {
  const auto fleetrun = start(
      "setsid sh -c 'trap \"\" TERM HUP; : >daemon.$RANK; while :; do sleep 1; done' & "
      "while ! test -e daemon.$RANK; do sleep 0.01; done");
  const std::vector<pid_t> guardian = job.processes("fleet-guardian");
  ASSERT_EQ(guardian.size(), 1u);
  ::kill(guardian[0], SIGKILL);
  EXPECT_EQ(fleetrun->wait(), 113);
  EXPECT_THAT(fleetrun->output(), HasSubstr("guardian"));
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

TEST_F(RunningJob, LauncherAndGuardianKilledAtOnce_LeaveNothing) {
  // setsid and a double fork take a process out of the process tree and the session.
  const auto fleetrun = start(
      "setsid sh -c '(trap \"\" TERM HUP; : >daemon.$RANK; exec sleep 1000) & ' & "
      "while ! test -e daemon.$RANK; do sleep 0.01; done");
  for (int i = 0; i < 30'000 && job.processes("fleet-watchdog").empty(); ++i) ::usleep(1000);
  const std::vector<pid_t> guardian = job.processes("fleet-guardian");
  ASSERT_EQ(guardian.size(), 1u);
  ::kill(guardian[0], SIGSTOP);  // so that it sees nothing of the launcher's end
  fleetrun->signal(SIGSTOP);
  ::kill(guardian[0], SIGKILL);
  fleetrun->signal(SIGKILL);
  EXPECT_EQ(fleetrun->wait(), 128 + SIGKILL);
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

TEST_F(RunningJob, RankKilled_IsNamed) {
  const auto fleetrun = start("echo $$ >pid.$RANK");
  ::kill(rank_pid(1), SIGKILL);
  EXPECT_EQ(fleetrun->wait(), 128 + SIGKILL);
  const auto rank = verdict_in(job)["rank"];
  EXPECT_EQ(rank["rank"], 1);
  EXPECT_EQ(rank["signal"], "SIGKILL");
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

TEST_F(RunningJob, UserSignals_ReachEveryRankAndTheJobGoesOn) {
  const auto fleetrun =
      start("trap ': >usr1.$RANK' USR1; trap ': >usr2.$RANK' USR2; trap 'exit 0' TERM");
  fleetrun->signal(SIGUSR1);
  for (const char* file : {"usr1.0", "usr1.1"}) job.wait_for(file);
  fleetrun->signal(SIGUSR2);
  for (const char* file : {"usr2.0", "usr2.1"}) job.wait_for(file);
  fleetrun->signal(SIGTERM);
  EXPECT_EQ(fleetrun->wait(), 128 + SIGTERM);
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

TEST_F(RunningJob, Record_TellsOfItWhileItRuns) {
  const auto fleetrun = start("echo $$ >pid.$RANK");
  const std::string path = job.path() + "/run/default." + std::to_string(fleetrun->pid()) + ".job";
  // A rank may be ahead of the record, which is written when all have their process.
  JobRecord record;
  while (record.ranks().empty()) record = read_job_record(path);
  EXPECT_EQ(record.pid(), fleetrun->pid());
  EXPECT_EQ(record.log_dir(), job.path() + "/log");
  ASSERT_EQ(record.ranks_size(), 2);
  EXPECT_EQ(record.ranks(1).pid(), rank_pid(1));
  fleetrun->signal(SIGTERM);
  fleetrun->wait();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(RunningJob, StoppedRank_HearsTheSignalToo) {
  const auto fleetrun = start("echo $$ >pid.$RANK; trap 'echo saved; exit 0' TERM");
  ::kill(rank_pid(1), SIGSTOP);
  fleetrun->signal(SIGTERM);
  EXPECT_EQ(fleetrun->wait(), 128 + SIGTERM);
  EXPECT_THAT(job.read("log/workerlog.1"), EndsWith("saved\n"));
  EXPECT_THAT(job.survivors(30), IsEmpty());
}

}  // namespace
}  // namespace fleet
