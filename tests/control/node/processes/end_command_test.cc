#include "node/end_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>

#include "base/clock.h"
#include "base/file.h"
#include "base/thread.h"
#include "node/process_tree.h"
#include "tests/captured_log.h"

namespace fleet {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct EndCommandTest : ::testing::Test {
  EndCommandTest() {
    std::filesystem::create_directories(folder);
    std::filesystem::remove(log);
    ::sigprocmask(SIG_SETMASK, nullptr, &mask);
    become_subreaper();
  }
  // Returns the log's new content.
  std::string run(const std::string& command, milliseconds limit = milliseconds(60'000)) {
    run_end_command({.command = command,
                     .input = "the verdict\n",
                     .log = log,
                     .limit = limit,
                     .signal_mask = mask,
                     .stop_signals = {SIGTERM}});
    return std::filesystem::is_regular_file(log) ? read_file(log) : "";
  }
  const std::string folder = ::testing::TempDir() + "end_command." + std::to_string(::getpid());
  const std::string log = folder + "/on_end.log";
  sigset_t mask;
};

TEST_F(EndCommandTest, Command_ReadsTheVerdictAndWritesToTheLog) {
  const LogCapture said;
  EXPECT_EQ(run("cat; echo broken >&2"), "the verdict\nbroken\n");
  EXPECT_EQ(run("echo again"), "again\n");  // of this job only
  EXPECT_THAT(said.captured_log(), IsEmpty());
}

// The launcher raises its own priority and limit of descriptors.
TEST_F(EndCommandTest, Limits_AreThoseOfTheLaunchersCaller) {
  rlimit own;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &own), 0);
  CallerLimits limits{::getpriority(PRIO_PROCESS, 0), own};
  limits.descriptors.rlim_cur = own.rlim_cur / 2;
  run_end_command({.command = "ulimit -n; nice",
                   .input = {},
                   .log = log,
                   .limit = milliseconds(60'000),
                   .signal_mask = mask,
                   .limits = limits,
                   .stop_signals = {SIGTERM}});
  EXPECT_EQ(read_file(log),
            std::to_string(own.rlim_cur / 2) + "\n" + std::to_string(limits.nice) + "\n");
  rlimit after;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &after), 0);
  EXPECT_EQ(after.rlim_cur, own.rlim_cur);
}

TEST_F(EndCommandTest, CommandThatReadsNothing_Ends) { EXPECT_EQ(run("true"), ""); }

TEST_F(EndCommandTest, FailingCommand_IsAWarningWithItsLog) {
  const LogCapture said;
  run("exit 3");
  EXPECT_THAT(said.captured_log(), HasSubstr("--on_end exited with 3; its output: " + log));
}

TEST_F(EndCommandTest, AtTheLimit_ItsGroupIsKilled) {
  const LogCapture said;
  const double start = unix_seconds();
  const std::string output =
      run("sleep 1000 & echo $!; trap '' TERM; sleep 1000; echo not reached", milliseconds(300));
  EXPECT_LT(unix_seconds() - start, 100);
  EXPECT_THAT(said.captured_log(),
              ::testing::AllOf(HasSubstr("--on_end was killed"), HasSubstr("0.3 s")));
  EXPECT_THAT(output, ::testing::Not(HasSubstr("not reached")));
  EXPECT_THAT(descendants({}), IsEmpty());
}

TEST_F(EndCommandTest, ProcessInItsBackground_MayFinish) {
  EXPECT_EQ(run("(sleep 0.2; echo sent) &"), "sent\n");
}

TEST_F(EndCommandTest, StopSignal_EndsItEarly) {
  const LogCapture said;
  struct sigaction handler = {}, before;
  handler.sa_handler = [](int) {};
  ::sigaction(SIGTERM, &handler, &before);  // as the launcher's loop: it does not end this process
  run("kill -TERM $PPID; sleep 1000");
  ::sigaction(SIGTERM, &before, nullptr);
  EXPECT_THAT(said.captured_log(), HasSubstr("--on_end was killed after SIGTERM"));
  EXPECT_THAT(descendants({}), IsEmpty());
}

TEST_F(EndCommandTest, LogThatCannotBeOpened_DoesNotStopIt) {
  const LogCapture said;
  std::filesystem::create_directories(log);
  run(": >" + folder + "/done");
  EXPECT_TRUE(std::filesystem::exists(folder + "/done"));
  EXPECT_THAT(said.captured_log(), HasSubstr("the output of --on_end follows here"));
  std::filesystem::remove_all(folder);
}

TEST(RunsEndCommand, OneNode_Does) {
  Verdict verdict;
  verdict.set_kind(Verdict::RANK_FAILED);
  EXPECT_TRUE(runs_end_command(verdict, true, 0));
  EXPECT_FALSE(runs_end_command(verdict, false, 1));
  verdict.set_kind(Verdict::NODE_LOST);
  verdict.set_node_rank(0);  // it hosted the rendezvous
  EXPECT_TRUE(runs_end_command(verdict, false, 1));
  EXPECT_FALSE(runs_end_command(verdict, false, 2));
  verdict.set_node_rank(2);
  EXPECT_TRUE(runs_end_command(verdict, true, 0));
  EXPECT_FALSE(runs_end_command(verdict, false, 1));
}

}  // namespace
}  // namespace fleet
