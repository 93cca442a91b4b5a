#include "node/stack_collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "node/process_tree.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using namespace std::chrono_literals;

// A fake eu-stack that prints its target, and three processes, of which the second is
// stopped.
struct StackCollectorTest : ::testing::Test {
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "fleet_stacks.XXXXXX";
    folder = ::mkdtemp(pattern.data());
    for (pid_t& pid : pids) {
      pid = ::fork();
      if (pid == 0) {
        for (;;) ::pause();
      }
    }
    ::kill(pids[1], SIGSTOP);
    while (process_state(pids[1]) != 'T') ::usleep(1000);
  }
  void TearDown() override {
    ::setenv("PATH", path.c_str(), 1);
    for (const pid_t pid : pids) ::kill(pid, SIGKILL);
    while (::waitpid(-1, nullptr, 0) > 0) {
    }
    std::filesystem::remove_all(folder);
  }
  void use_debugger(const std::string& script) {
    const std::string file = folder + "/eu-stack";
    write_file_atomically(file, "#!/bin/sh\n" + script);
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    ::setenv("PATH", (folder + ":" + path).c_str(), 1);
  }
  Stacks collect(size_t at_once, std::chrono::milliseconds limit) {
    boost::asio::io_context loop;
    StackCollector collector(loop, at_once);
    std::vector<StackCollector::Target> targets;
    for (int i = 0; i < 3; ++i) targets.push_back({i, pids[i], folder + "/" + std::to_string(i)});
    Stacks stacks;
    collector.collect(targets, limit, [&](Stacks all) {
      stacks = std::move(all);
      loop.stop();
    });
    loop.run();
    return stacks;
  }
  const std::string path = ::getenv("PATH");
  std::string folder;
  pid_t pids[3] = {};
};

TEST_F(StackCollectorTest, OneAtATime_TheStoppedOneFirst) {
  use_debugger("echo $4 >>" + folder + "/seen; echo \"TID $4:\"; echo '#0  0x1 wait'");
  const Stacks stacks = collect(1, 60s);
  ASSERT_EQ(stacks.clusters_size(), 3);
  for (const StackCluster& one : stacks.clusters()) EXPECT_THAT(one.frames(), ElementsAre("wait"));
  EXPECT_EQ(stacks.clusters(0).ranks(0).local_rank(), 1);
  EXPECT_EQ(stacks.clusters(0).ranks(0).state(), 'T');
  EXPECT_EQ(read_file(folder + "/seen"), std::to_string(pids[1]) + "\n" + std::to_string(pids[0]) +
                                             "\n" + std::to_string(pids[2]) + "\n");
}

TEST_F(StackCollectorTest, DebuggerThatHangs_IsKilledAndSaid) {
  use_debugger("exec sleep 1000");
  const Stacks stacks = collect(2, 50ms);
  ASSERT_EQ(stacks.clusters_size(), 3);
  EXPECT_EQ(stacks.clusters(0).missing(), "the debugger did not end in time");
  EXPECT_EQ(stacks.clusters(1).missing(), "the debugger did not end in time");
  EXPECT_EQ(stacks.clusters(2).missing(), "no time was left");
}

TEST_F(StackCollectorTest, LinkInPlaceOfItsFile_IsNotWrittenThrough) {
  write_file_atomically(folder + "/victim", "precious");
  std::filesystem::create_symlink("victim", folder + "/1");
  use_debugger("echo \"TID $4:\"; echo '#0  0x1 wait'");
  const Stacks stacks = collect(3, 60s);
  for (const StackCluster& one : stacks.clusters()) EXPECT_THAT(one.frames(), ElementsAre("wait"));
  EXPECT_EQ(read_file(folder + "/victim"), "precious");
  EXPECT_NE(read_file(folder + "/0"), "");
}

}  // namespace
}  // namespace fleet
