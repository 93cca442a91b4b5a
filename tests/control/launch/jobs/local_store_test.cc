// The store of a job of one node: a Unix socket that only this user's processes reach.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/text.h"
#include "tests/control/launch/jobs/fleetrun_process.h"
#include "tests/test_paths.h"

namespace fleet {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// "socket:[4711]" of all that listens by TCP in this network namespace.
std::set<std::string> listening_sockets() {
  std::set<std::string> all;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
      std::istringstream words(line);
      std::vector<std::string> fields(10);
      for (std::string& field : fields) words >> field;
      if (fields[3] == "0A") all.insert("socket:[" + fields[9] + "]");
    }
  }
  return all;
}

std::vector<std::string> listened_on_by(const std::vector<pid_t>& pids) {
  const std::set<std::string> listening = listening_sockets();
  std::vector<std::string> found;
  for (const pid_t pid : pids) {
    std::error_code gone;
    const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
    for (const auto& fd : std::filesystem::directory_iterator(folder, gone)) {
      const std::string target = std::filesystem::read_symlink(fd.path(), gone).string();
      if (listening.contains(target)) found.push_back(std::to_string(pid) + " " + target);
    }
  }
  return found;
}

struct LocalStore : ::testing::Test {
  LocalStore() { ::mkdir(runtime.c_str(), 0700); }

  Fleetrun start(const std::vector<std::string>& program, std::vector<std::string> options = {}) {
    options.insert(options.begin(), "--nproc_per_node=2");
    options.insert(options.end(), program.begin(), program.end());
    return Fleetrun(job, "run", options, {{"FLEET_RUNTIME_DIR", runtime}});
  }
  void expect_store_works() {
    Fleetrun fleetrun = start({kHelper, "store"});
    EXPECT_EQ(fleetrun.wait(), 0) << fleetrun.output();
    EXPECT_THAT(split(job.read("log/workerlog.0"), '\n'), Contains("sum 1"));
  }
  std::vector<std::string> sockets() const {
    std::vector<std::string> all;
    for (const auto& file : std::filesystem::directory_iterator(runtime)) {
      if (file.is_socket()) all.push_back(file.path().filename().string());
    }
    return all;
  }

  JobFolder job;
  std::string runtime = job.path() + "/runtime";
};

TEST_F(LocalStore, OneNode_ListensOnNoTcpPort) {
  for (const char* option : {"--nnodes=1", "--insecure", "--max_restart=1"}) {
    std::filesystem::remove(job.path() + "/up");
    std::filesystem::remove(job.path() + "/go");
    Fleetrun fleetrun =
        start({"sh", "-c", ": >up; while [ ! -e go ]; do sleep 0.02; done"}, {option});
    job.wait_for("up");
    EXPECT_THAT(listened_on_by(job.processes()), IsEmpty()) << option;
    std::ofstream(job.path() + "/go");
    EXPECT_EQ(fleetrun.wait(), 0) << fleetrun.output();
  }
}

TEST_F(LocalStore, Ranks_ReachItByItsPath) {
  Fleetrun fleetrun = start({"sh", "-c", "echo $FLEET_STORE_ADDRESS/$FLEET_CREDENTIALS"});
  EXPECT_EQ(fleetrun.wait(), 0);
  EXPECT_THAT(job.read("log/workerlog.0"), StartsWith("unix:/"));
  EXPECT_THAT(sockets(), IsEmpty());
  expect_store_works();
}

TEST_F(LocalStore, FolderWithALongName_Works) {
  runtime += "/" + std::string(150, 'l');
  ::mkdir(runtime.c_str(), 0700);
  expect_store_works();
}

TEST_F(LocalStore, FolderThatCannotBeMade_IsNotNeeded) {
  runtime = "/proc/nowhere";
  expect_store_works();
}

TEST_F(LocalStore, FleetrunInARankOfAnotherJob_HasItsOwn) {
  Fleetrun fleetrun = start(
      {program_folder() + "/fleetrun", "--nproc_per_node=2", "--log_dir=inner", kHelper, "store"},
      {"--nproc_per_node=1"});
  EXPECT_EQ(fleetrun.wait(), 0) << fleetrun.output();
  EXPECT_THAT(split(job.read("inner/workerlog.1"), '\n'), Contains("sum 1"));
}

TEST_F(LocalStore, OfAJobThatWasKilled_IsRemovedByTheNext) {
  Fleetrun fleetrun = start({"sh", "-c", ": >up; exec sleep 1000"});
  job.wait_for("up");
  ::kill(fleetrun.pid(), SIGKILL);
  fleetrun.wait();
  EXPECT_THAT(job.survivors(30), IsEmpty());
  expect_store_works();
  for (const std::string& left : sockets()) EXPECT_FALSE(left.starts_with("rendezvous.")) << left;
}

}  // namespace
}  // namespace fleet
