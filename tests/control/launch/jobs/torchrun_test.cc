// Whole jobs as torchrun runs them: its defaults, console and logs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <memory>

#include "base/text.h"
#include "node/reserved_ports.h"
#include "tests/control/launch/jobs/fleetrun_process.h"
#include "tests/control/launch/jobs/verdict.h"

namespace fleet {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

struct AsTorchrun : ::testing::Test {
  // Runs a shell script on two ranks to its end.
  int run(const std::string& script, std::vector<std::string> options = {},
          Fleetrun::Environment environment = {}) {
    options.insert(options.begin(), {"--compat=torchrun", "--nproc-per-node=2", "--no-python"});
    options.insert(options.end(), {"sh", "-c", script});
    environment.emplace_back("TMPDIR", job.path() + "/tmp");
    std::filesystem::create_directory(job.path() + "/tmp");
    Fleetrun torchrun(job, "run", options, environment);
    const int code = torchrun.wait();
    output = torchrun.output();
    EXPECT_THAT(job.survivors(30), IsEmpty());
    return code;
  }
  // Files below a folder of the job, with the job's own folder as "RUN".
  std::vector<std::string> files(const std::string& folder) const {
    std::vector<std::string> found;
    const std::filesystem::path root = job.path() + "/" + folder;
    if (!std::filesystem::exists(root)) return found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
      if (!entry.is_regular_file()) continue;
      const std::string path = entry.path().lexically_relative(root).string();
      found.push_back("RUN" + path.substr(std::min(path.find('/'), path.size())));
    }
    return found;
  }
  // The only folder in there.
  std::string run_folder(const std::string& folder) const {
    for (const auto& entry : std::filesystem::directory_iterator(job.path() + "/" + folder)) {
      return folder + "/" + entry.path().filename().string();
    }
    return {};
  }
  // A free one, the same every time.
  int port() {
    if (port_ == 0) port_ = ReservedPort::any("127.0.0.1").port();
    return port_;
  }
  JobFolder job;
  std::string output;

 private:
  int port_ = 0;
};

TEST_F(AsTorchrun, AllRanksShowAsTheyAreAndNothingElse) {
  EXPECT_EQ(run("echo out; echo error >&2"), 0);
  const std::vector<std::string> lines = split(trim(output), '\n');
  EXPECT_THAT(lines, UnorderedElementsAre("out", "out", "error", "error"));
}

TEST_F(AsTorchrun, WithoutALogDir_NothingIsLeft) {
  EXPECT_EQ(run("test -d ${TORCHELASTIC_ERROR_FILE%/*}"), 0);
  EXPECT_THAT(files("tmp"), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(job.path() + "/log"));
}

TEST_F(AsTorchrun, OneRankIsTheDefault) {
  EXPECT_EQ(run("test $WORLD_SIZE = 2 -a -n \"$OMP_NUM_THREADS\" || exit 5; echo well"), 0);
  Fleetrun alone(job, "alone",
                 {"--compat=torchrun", "--no-python", "sh", "-c", "echo $WORLD_SIZE"});
  EXPECT_EQ(alone.wait(), 0);
  EXPECT_EQ(alone.output(), "1\n");
}

TEST_F(AsTorchrun, Redirects_AreFilesOnly) {
  EXPECT_EQ(run("echo out $RANK; echo error $RANK >&2", {"--log-dir=logs", "-r", "0:3,1:1"}), 0);
  EXPECT_EQ(output, "error 1\n");
  const std::string folder = run_folder("logs");
  EXPECT_THAT(folder, MatchesRegex("logs/none_[a-z0-9]{8}"));
  EXPECT_THAT(files("logs"),
              ::testing::IsSupersetOf({"RUN/attempt_0/0/stdout.log", "RUN/attempt_0/0/stderr.log",
                                       "RUN/attempt_0/1/stdout.log"}));
  EXPECT_THAT(files("logs"), Not(::testing::Contains("RUN/attempt_0/1/stderr.log")));
  EXPECT_EQ(job.read(folder + "/attempt_0/0/stdout.log"), "out 0\n");
  EXPECT_EQ(job.read(folder + "/attempt_0/0/stderr.log"), "error 0\n");
}

TEST_F(AsTorchrun, Tee_ShowsWithRoleAndLocalRank) {
  EXPECT_EQ(run("echo out; echo error >&2", {"--log-dir=logs", "--tee=1:3", "--role=worker"}), 0);
  EXPECT_THAT(split(trim(output), '\n'),
              UnorderedElementsAre("out", "error", "[worker1]:out", "[worker1]:error"));
}

TEST_F(AsTorchrun, Prefix_IsTheUsersOwn) {
  EXPECT_EQ(run("echo out",
                {"-t", "3", "--log-line-prefix-template", "<${role_name} $local_rank/${rank}> "}),
            0);
  EXPECT_THAT(split(trim(output), '\n'),
              UnorderedElementsAre("<default 0/0> out", "<default 1/1> out"));
}

TEST_F(AsTorchrun, Filter_HidesOtherRanks) {
  EXPECT_EQ(run("echo $RANK", {"--local-ranks-filter=1", "--log-dir=logs", "-t", "0:3"}), 0);
  EXPECT_EQ(output, "1\n");
  EXPECT_EQ(job.read(run_folder("logs") + "/attempt_0/0/stdout.log"), "0\n");
}

TEST_F(AsTorchrun, Duplicates_AreLinesWithTheText) {
  EXPECT_EQ(run("echo an apple; echo a pear; echo plum >&2",
                {"--log-dir=logs", "-t", "3", "--duplicate-stdout-filters=apple,fig",
                 "--duplicate-stderr-filters=plum"}),
            0);
  const std::string attempt = run_folder("logs") + "/attempt_0";
  EXPECT_THAT(split(trim(job.read(attempt + "/filtered_stdout.log")), '\n'),
              UnorderedElementsAre("[default0]:an apple", "[default1]:an apple"));
  EXPECT_THAT(split(trim(job.read(attempt + "/filtered_stderr.log")), '\n'),
              UnorderedElementsAre("[default0]:plum", "[default1]:plum"));
}

TEST_F(AsTorchrun, Restarts_HaveAFolderEach) {
  // Each rank waits for the other: a failure ends that one wherever it is.
  const std::string script =
      "start=$TORCHELASTIC_RESTART_COUNT; echo $start of $TORCHELASTIC_MAX_RESTARTS; "
      ": >said.$start.$RANK; "
      "until test -e said.$start.0 -a -e said.$start.1; do sleep 0.01; done; test $start = 1";
  EXPECT_EQ(run(script, {"--max-restarts=2", "--log-dir=logs", "-r", "3"}), 0);
  const std::string folder = run_folder("logs");
  EXPECT_EQ(job.read(folder + "/attempt_0/0/stdout.log"), "0 of 2\n");
  EXPECT_EQ(job.read(folder + "/attempt_1/0/stdout.log"), "1 of 2\n");
}

TEST_F(AsTorchrun, Failure_IsReportedAndItsFilesStay) {
  EXPECT_EQ(
      run("test $RANK = 1 && echo '{\"message\": \"out of luck\"}' >$TORCHELASTIC_ERROR_FILE && "
          "exit 4; exec sleep 1000"),
      4);
  const std::string parent = run_folder("tmp");
  EXPECT_EQ(verdict_in(job, run_folder(parent))["rank"]["error"]["message"], "out of luck");
}

TEST_F(AsTorchrun, LocalRankInArguments_IsFilledIn) {
  Fleetrun torchrun(job, "run",
                    {"--compat=torchrun", "--nproc-per-node=2", "--no-python", "echo",
                     "rank ${local_rank}", "$$5"});
  EXPECT_EQ(torchrun.wait(), 0);
  EXPECT_THAT(split(trim(torchrun.output()), '\n'), UnorderedElementsAre("rank 0 $5", "rank 1 $5"));
}

TEST_F(AsTorchrun, PaddlesVariables_DoNotCount) {
  EXPECT_EQ(run("echo $WORLD_SIZE", {}, {{"PADDLE_NNODES", "7"}, {"PADDLE_LOG_DIR", "x"}}), 0);
  EXPECT_EQ(output, "2\n2\n");
}

TEST_F(AsTorchrun, SignalsToHandle_StopTheJob) {
  Fleetrun torchrun(job, "run",
                    {"--compat=torchrun", "--nproc-per-node=2", "--no-python",
                     "--signals-to-handle=SIGUSR1,SIGTERM", "sh", "-c",
                     "trap 'echo stopped $RANK; exit 0' USR1; : >up.$RANK; while :; do sleep 0.01; "
                     "done"});
  job.wait_for("up.0");
  job.wait_for("up.1");
  torchrun.signal(SIGUSR1);
  EXPECT_EQ(torchrun.wait(), 128 + SIGUSR1);
  EXPECT_THAT(split(torchrun.output(), '\n'), IsSupersetOf({"stopped 0", "stopped 1"}));
}

TEST_F(AsTorchrun, TwoNodesAtOneLoopbackAddress_Meet) {
  const auto start = [&](int node) {
    return std::make_unique<Fleetrun>(
        job, "node" + std::to_string(node),
        std::vector<std::string>{
            "--compat=torchrun", "--nnodes=2", "--node-rank", std::to_string(node),
            "--master-addr=127.0.0.1", "--master-port=" + std::to_string(port()), "--insecure",
            "--no-python", "sh", "-c", "echo $RANK of $WORLD_SIZE on $GROUP_RANK as $ROLE_RANK"});
  };
  const auto first = start(0), second = start(1);
  EXPECT_EQ(first->wait(), 0) << first->output();
  EXPECT_EQ(second->wait(), 0) << second->output();
  EXPECT_THAT(split(first->output(), '\n'), Contains("0 of 2 on 0 as 0"));
  EXPECT_THAT(split(second->output(), '\n'), Contains("1 of 2 on 1 as 1"));
}

TEST(UnderFleetrun, TorchrunsOptions_KeepFleetrunsLogsAndConsole) {
  JobFolder job;
  Fleetrun fleetrun(job, "run",
                    {"--nproc-per-node=2", "--no-python", "--standalone", "-t", "1",
                     "--duplicate-stdout-filters=rank 1", "--log-line-prefix-template=<$rank>",
                     "sh", "-c", "echo rank $RANK"});
  EXPECT_EQ(fleetrun.wait(), 0);
  EXPECT_THAT(split(fleetrun.output(), '\n'), IsSupersetOf({"<0>rank 0", "<1>rank 1"}));
  EXPECT_EQ(job.read("log/workerlog.1"), "rank 1\n");
  EXPECT_EQ(job.read("log/filtered_stdout.log"), "<1>rank 1\n");
}

TEST(UnderFleetrun, NumaBindingWithoutAGpu_IsRefusedBeforeAnythingStarts) {
  JobFolder job;
  Fleetrun fleetrun(job, "run", {"--numa-binding=node", "sh", "-c", "echo started"});
  if (std::filesystem::exists("/proc/driver/nvidia/gpus")) GTEST_SKIP() << "there is a GPU";
  EXPECT_EQ(fleetrun.wait(), 2);
  EXPECT_THAT(split(trim(fleetrun.output()), '\n'), ::testing::SizeIs(1));
}

TEST(UnderFleetrun, CompletionOfAShell_IsPrinted) {
  JobFolder job;
  Fleetrun bash(job, "bash", {"--print-completion=bash"}),
      tcsh(job, "tcsh", {"--print_completion", "tcsh"});
  EXPECT_EQ(bash.wait(), 0);
  EXPECT_THAT(bash.output(), HasSubstr("--rdzv_endpoint="));
  EXPECT_EQ(tcsh.wait(), 2);
}

}  // namespace
}  // namespace fleet
