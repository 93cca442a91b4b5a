#include "node/spawn.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/child_process.h"
#include "base/file_size_signal.h"
#include "base/thread.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

sigset_t no_signals() {
  sigset_t mask;
  ::sigemptyset(&mask);
  return mask;
}

struct Finished {
  std::string output;
  int status = 0;
};

// Runs a shell script as a rank, to its end.
Finished run_script(const std::string& script, wire::RankCommand rank = {},
                    RankDescriptors* low_descriptors = nullptr) {
  for (const std::string& word : {std::string("/bin/sh"), std::string("-c"), script}) {
    rank.add_argv(word);
  }
  SpawnResult spawned = spawn_rank(rank, no_signals(), nullptr, low_descriptors);
  Finished finished;
  EXPECT_GT(spawned.pid, 0) << spawned.error;
  if (spawned.pid <= 0) return finished;
  char buffer[4096];
  for (;;) {
    pollfd readable = {spawned.output.output.get(), POLLIN, 0};
    ::poll(&readable, 1, -1);
    const ssize_t n = ::read(spawned.output.output.get(), buffer, sizeof buffer);
    if (n <= 0) break;
    finished.output.append(buffer, static_cast<size_t>(n));
  }
  ::waitpid(spawned.pid, &finished.status, 0);
  return finished;
}

TEST(SpawnRank, OutputAndErrors_ComeInOrder) {
  EXPECT_EQ(run_script("echo one; echo two >&2; echo three").output, "one\ntwo\nthree\n");
}

TEST(SpawnRank, ExitCode_IsTheProgramsOwn) {
  const Finished finished = run_script("exit 9");
  ASSERT_TRUE(WIFEXITED(finished.status));
  EXPECT_EQ(WEXITSTATUS(finished.status), 9);
}

TEST(SpawnRank, Environment_IsSetAndRemoved) {
  ::setenv("FLEET_TEST_KEPT", "kept", 1);
  ::setenv("FLEET_TEST_GONE", "gone", 1);
  ::setenv("FLEET_TEST_NEW", "old", 1);
  wire::RankCommand rank;
  rank.add_environment()->set_name("FLEET_TEST_NEW");
  rank.mutable_environment(0)->set_value("new value");
  rank.add_removed("FLEET_TEST_GONE");
  EXPECT_EQ(
      run_script("echo $FLEET_TEST_KEPT/${FLEET_TEST_GONE-unset}/$FLEET_TEST_NEW", rank).output,
      "kept/unset/new value\n");
}

TEST(SpawnRank, ProcessGroup_IsItsOwn) {
  // The shell's pid is its group's id.
  EXPECT_EQ(run_script("test $$ = $(cut -d' ' -f5 /proc/$$/stat) && echo own").output, "own\n");
}

// The launcher ignores it, its ranks get its action back.
TEST(SpawnRank, FileSizeSignal_IsTheDefault) {
  ignore_file_size_signal();
  const std::string script = "ulimit -f 1 && exec dd if=/dev/zero of=\"$0\" bs=64k count=1";
  char file[] = "/tmp/fleet_spawn_test.XXXXXX";
  ::close(::mkstemp(file));
  const std::vector<std::string> words = {"/bin/sh", "-c", script, file};
  wire::RankCommand rank;
  for (const std::string& word : words) rank.add_argv(word);
  SpawnResult spawned = spawn_rank(rank, no_signals());
  ASSERT_GT(spawned.pid, 0) << spawned.error;
  int status = 0;
  ASSERT_EQ(::waitpid(spawned.pid, &status, 0), spawned.pid);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ) << status;
  const int child = wait_for_child(start_child({.words = words}));
  EXPECT_EQ(child, 128 + SIGXFSZ);
  ::unlink(file);
}

TEST(OpenDescriptors, AreThoseAboveTheStandardOnes) {
  const UniqueFd other(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const std::vector<int> all = open_descriptors();
  EXPECT_THAT(all, ::testing::Contains(other.get()));
  EXPECT_THAT(all, ::testing::Each(::testing::Gt(2)));
}

TEST(SpawnRank, StandardInput_IsEmpty) { EXPECT_EQ(run_script("wc -c").output, "0\n"); }

TEST(SpawnRank, OurDescriptors_AreNotInherited) {
  // Descriptors that the test inherited may be passed on; those that spawning opens may not.
  for (int fd = 3; fd < 1024; ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  const std::string open = run_script("exec ls /proc/self/fd").output;
  EXPECT_EQ(open, "0\n1\n2\n3\n");  // 3: the folder that ls reads
}

// As the guardian starts them: what it has open for other ranks does not matter, what the launcher
// was given for all is inherited.
TEST(SpawnRank, WithPlacesForItsDescriptors_HasTheSameOnes) {
  for (int fd = 3; fd < 1024; ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  const int given = ::dup2(STDIN_FILENO, 40);
  RankDescriptors low_descriptors;
  if (!low_descriptors.usable()) GTEST_SKIP() << "this kernel has no close_range()";
  std::vector<UniqueFd> others;
  for (int i = 0; i < 100; ++i) others.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  wire::RankCommand rank;
  rank.set_service_socket(true);
  rank.set_error_log_path("of its own");
  for (int i = 0; i < 3; ++i) {
    const Finished finished = run_script("exec ls /proc/self/fd", rank, &low_descriptors);
    EXPECT_THAT(finished.output, ::testing::AllOf(HasSubstr("0\n1\n2\n"), HasSubstr("\n40\n")));
    EXPECT_LE(std::count(finished.output.begin(), finished.output.end(), '\n'), 6);
    EXPECT_EQ(finished.status, 0);
  }
  ::close(given);
}

// The end of a rank's pipe is seen: the low_descriptors do not keep it open.
TEST(SpawnRank, WithPlaces_RunsOneAfterAnotherAndFailsAsWithout) {
  RankDescriptors low_descriptors;
  EXPECT_EQ(run_script("echo one; echo two >&2", {}, &low_descriptors).output, "one\ntwo\n");
  wire::RankCommand rank;
  rank.add_argv("/no/such/program");
  const SpawnResult failed = spawn_rank(rank, no_signals(), nullptr, &low_descriptors);
  EXPECT_THAT(failed.error, HasSubstr("No such file"));
  EXPECT_EQ(run_script("wc -c", {}, &low_descriptors).output, "0\n");
}

TEST(SpawnRank, Cores_ArePinned) {
  wire::RankCommand rank;
  rank.add_cores(available_cores().back());
  EXPECT_EQ(run_script("nproc", rank).output, "1\n");
}

TEST(SpawnRank, SignalMask_IsTheGivenOne) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  const std::string blocked = run_script("exec grep SigBlk /proc/self/status").output;
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(blocked, "SigBlk:\t0000000000000000\n");
}

TEST(SpawnRank, NoSuchProgram_IsAnErrorNotAProcess) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer makes a fork() of a vfork(): the error stays in the child";
#endif
  wire::RankCommand rank;
  rank.add_argv("/no/such/program");
  const SpawnResult spawned = spawn_rank(rank, no_signals());
  EXPECT_EQ(spawned.pid, -1);
  EXPECT_THAT(spawned.error, HasSubstr("/no/such/program"));
  EXPECT_THAT(spawned.error, HasSubstr("No such file"));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

}  // namespace
}  // namespace fleet
