// A job is signalled, stopped and found by any of its processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "tests/control/launch/jobs/fleetrun_process.h"
#include "tests/control/launch/jobs/verdict.h"
#include "tests/control/node/without_pidfd.h"
#include "tests/test_paths.h"

namespace fleet {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct AnyProcess : ::testing::Test {
  ~AnyProcess() override { EXPECT_THAT(job.survivors(30), IsEmpty()); }
  // A rank that ends well after a stop, unless it is killed.
  void start() {
    fleetrun = std::make_unique<Fleetrun>(
        job, "run",
        std::vector<std::string>{
            "--job_id=" + id, "--nproc_per_node=1", "--grace=1000", "sh", "-c",
            "trap ': >usr1' USR1; trap ': >told' TERM INT HUP QUIT; echo $$ >pid; : >ready; "
            "while [ ! -e told ]; do sleep 0.01; done; while [ ! -e end ]; do sleep 0.01; done; "
            "echo saved; exit 0"});
    job.wait_for("ready");
  }
  pid_t process(const std::string& name) {
    std::vector<pid_t> found = job.processes(name);
    for (; found.empty(); found = job.processes(name)) ::poll(nullptr, 0, 5);
    return found[0];
  }
  pid_t rank() {
    long long pid = 0;
    EXPECT_TRUE(parse_int(trim(job.read("pid")), &pid));
    return static_cast<pid_t>(pid);
  }
  void make(const std::string& file) { write_file_atomically(job.path() + "/" + file, ""); }
  // The ranks had their grace time: none was killed.
  void expect_stopped_by(int signal) {
    job.wait_for("told");
    make("end");
    EXPECT_EQ(fleetrun->wait(), 128 + signal) << fleetrun->output();
    EXPECT_THAT(job.read("log/workerlog.0"), EndsWith("saved\n"));
  }
  int command(const std::vector<std::string>& words) {
    Fleetrun command(job, "command" + std::to_string(++commands), words);
    const int code = command.wait();
    said = command.output();
    return code;
  }
  JobFolder job;
  const std::string id = "any-" + std::to_string(::getpid());
  std::unique_ptr<Fleetrun> fleetrun;
  std::string said;
  int commands = 0;
};

TEST_F(AnyProcess, SigtermToTheGuardian_StopsTheJob) {
  start();
  ::kill(process("fleet-guardian"), SIGTERM);
  expect_stopped_by(SIGTERM);
}

TEST_F(AnyProcess, InterruptToTheWatchdog_StopsTheJob) {
  start();
  ::kill(process("fleet-watchdog"), SIGINT);
  expect_stopped_by(SIGINT);
}

TEST_F(AnyProcess, UserSignalToTheGuardian_ReachesTheRanks) {
  start();
  ::kill(process("fleet-guardian"), SIGUSR1);
  job.wait_for("usr1");
  fleetrun->signal(SIGTERM);
  expect_stopped_by(SIGTERM);
}

// pkill -f: in the order of the pids, whatever that is.
TEST_F(AnyProcess, SignalToAll_IsOneRequestInEveryOrder) {
  std::vector<int> order = {0, 1, 2};
  do {
    start();
    const pid_t all[] = {fleetrun->pid(), process("fleet-guardian"), process("fleet-watchdog")};
    for (const int one : order) ::kill(all[one], SIGTERM);
    expect_stopped_by(SIGTERM);
    for (const char* file : {"told", "end", "ready", "log/workerlog.0"}) {
      std::filesystem::remove(job.path() + "/" + file);
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(AnyProcess, Guardian_IsShownWithItsJob) {
  start();
  const auto line = [](pid_t pid) {
    const std::string words = read_file("/proc/" + std::to_string(pid) + "/cmdline");
    return words.substr(0, words.find('\0'));
  };
  EXPECT_EQ(line(process("fleet-guardian")), "fleetrun: guardian of job " + id);
  EXPECT_EQ(line(process("fleet-watchdog")), "fleetrun: watchdog of job " + id);
  fleetrun->signal(SIGTERM);
  expect_stopped_by(SIGTERM);
}

TEST_F(AnyProcess, EveryPid_NamesTheJob) {
  start();
  for (const pid_t pid :
       {fleetrun->pid(), process("fleet-guardian"), process("fleet-watchdog"), rank()}) {
    EXPECT_EQ(command({"status", std::to_string(pid)}), 0) << pid;
    EXPECT_THAT(said, HasSubstr(id));
  }
  make("end");
  EXPECT_EQ(command({"stop", std::to_string(rank())}), 0) << said;
  EXPECT_EQ(fleetrun->wait(), 128 + SIGTERM);
}

// A logout removes the session's runtime folder.
TEST_F(AnyProcess, JobWithoutItsRecord_IsFoundByNamePidAndLogFolder) {
  start();
  std::filesystem::remove_all(job.path() + "/run");
  for (const std::string& name :
       {id, std::to_string(fleetrun->pid()), std::to_string(rank()), job.path() + "/log"}) {
    EXPECT_EQ(command({"status", name}), 0) << name << ": " << said;
  }
  EXPECT_EQ(command({"ls"}), 0);
  EXPECT_THAT(said, HasSubstr(id));
  make("end");
  EXPECT_EQ(command({"stop", id}), 0) << said;
  EXPECT_EQ(fleetrun->wait(), 128 + SIGTERM);
}

// A kernel before 5.3, or a container that forbids it.
TEST_F(AnyProcess, StopWithoutPidfd_StopsTheJob) {
  start();
  make("end");
  const pid_t child = ::fork();
  if (child == 0) {
    if (!forbid_pidfd(EPERM)) ::_exit(77);
    ::setenv("FLEET_RUNTIME_DIR", (job.path() + "/run").c_str(), 1);
    ::execl((program_folder() + "/fleetrun").c_str(), "fleetrun", "stop", id.c_str(), nullptr);
    ::_exit(127);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    fleetrun->signal(SIGTERM);
    fleetrun->wait();
    GTEST_SKIP() << "the kernel has no seccomp filters";
  }
  EXPECT_EQ(status, 0);
  EXPECT_EQ(fleetrun->wait(), 128 + SIGTERM);  // it does not say so before the job has ended
}

}  // namespace
}  // namespace fleet
