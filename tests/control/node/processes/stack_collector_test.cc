#include "node/stack_collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "base/program_file.h"
#include "diagnosis/stacks.h"
#include "node/process_tree.h"
#include "transport/event_loop.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
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
    EventLoop loop;
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
  EXPECT_THAT(stacks.clusters(0).missing(), HasSubstr("debugger did not end"));
  EXPECT_THAT(stacks.clusters(1).missing(), HasSubstr("debugger did not end"));
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

// A rank in Python: the innermost function is `wait_here`.
struct PythonStacks : StackCollectorTest {
  void SetUp() override {
    StackCollectorTest::SetUp();
    if (::access("/usr/bin/python3", X_OK) != 0) GTEST_SKIP() << "no /usr/bin/python3";
    write_file_atomically(folder + "/train.py",
                          "import os, time\n"
                          "def wait_here():\n"
                          "  open('" +
                              folder +
                              "/up', 'w').close()\n"
                              "  time.sleep(1000)\n"
                              "wait_here()\n");
    python = ::fork();
    if (python == 0) {
      ::execl("/usr/bin/python3", "python3", (folder + "/train.py").c_str(), nullptr);
      ::_exit(1);
    }
    while (::access((folder + "/up").c_str(), F_OK) != 0) ::usleep(10'000);
  }
  void TearDown() override {
    if (python > 0) ::kill(python, SIGKILL);
    StackCollectorTest::TearDown();
  }
  void make_program(const std::string& name, const std::string& script) {
    const std::string file = folder + "/" + name;
    write_file_atomically(file, "#!/bin/sh\n" + script);
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  }
  // Of the Python process, with only these folders on the PATH.
  StackCluster collect_python(const std::string& folders, std::chrono::milliseconds limit = 60s) {
    ::setenv("PATH", folders.c_str(), 1);
    EventLoop loop;
    StackCollector collector(loop, 1);
    Stacks stacks;
    collector.collect({{0, python, folder + "/out"}}, limit, [&](Stacks all) {
      stacks = std::move(all);
      loop.stop();
    });
    loop.run();
    EXPECT_EQ(stacks.clusters_size(), 1);
    return stacks.clusters(0);
  }
  void expect_python_frames(const StackCluster& cluster) {
    EXPECT_THAT(cluster.python_frames(), ElementsAre("wait_here (" + folder + "/train.py:4)",
                                                     "<module> (" + folder + "/train.py:5)"));
    EXPECT_EQ(cluster.python_missing(), "");
    EXPECT_THAT(stacks_text(cluster_stacks(stacks_of(cluster))),
                HasSubstr("\n    Python: wait_here (" + folder + "/train.py:4)\n"));
    EXPECT_THAT(read_file(folder + "/out"), HasSubstr("Python:\n"));
  }
  static Stacks stacks_of(const StackCluster& cluster) {
    Stacks stacks;
    *stacks.add_clusters() = cluster;
    return stacks;
  }
  void expect_alive_and_running() const { EXPECT_EQ(process_state(python), 'S'); }
  pid_t python = -1;
};

TEST_F(PythonStacks, PySpy_FramesAboveTheNativeOnes) {
  const std::string real = find_on_path("py-spy");
  if (real.empty()) GTEST_SKIP() << "py-spy is not on the PATH (pip install py-spy)";
  use_debugger("echo \"TID $4:\"; echo '#0  0x1 clock_nanosleep'");
  const StackCluster cluster =
      collect_python(folder + ":" + std::filesystem::path(real).parent_path().string());
  EXPECT_THAT(cluster.frames(), ElementsAre("clock_nanosleep"));
  expect_python_frames(cluster);
  expect_alive_and_running();
}

TEST_F(PythonStacks, PySpyOfAStoppedRank_ReadsItToo) {
  const std::string real = find_on_path("py-spy");
  if (real.empty()) GTEST_SKIP() << "py-spy is not on the PATH (pip install py-spy)";
  ::kill(python, SIGSTOP);
  while (process_state(python) != 'T') ::usleep(1000);
  expect_python_frames(
      collect_python(folder + ":" + std::filesystem::path(real).parent_path().string()));
  EXPECT_EQ(process_state(python), 'T');
}

TEST_F(PythonStacks, GdbWithTheInterpretersScript_FramesAreRead) {
  const std::string script = "/usr/share/gdb/auto-load" +
                             std::filesystem::canonical("/usr/bin/python3").string() + "-gdb.py";
  if (::access("/usr/bin/gdb", X_OK) != 0 || ::access(script.c_str(), R_OK) != 0) {
    GTEST_SKIP() << "no gdb, or no " << script << " (apt-get install gdb python3-dbg)";
  }
  std::filesystem::create_symlink("/usr/bin/gdb", folder + "/gdb");
  use_debugger("echo \"TID $4:\"; echo '#0  0x1 clock_nanosleep'");
  const StackCluster cluster = collect_python(folder);
  EXPECT_THAT(cluster.frames(), ElementsAre("clock_nanosleep"));
  expect_python_frames(cluster);
  expect_alive_and_running();
}

TEST_F(PythonStacks, NeitherIsThere_TheNativeStackSaysWhatWouldShowMore) {
  use_debugger("echo \"TID $4:\"; echo '#0  0x1 clock_nanosleep'");
  const StackCluster cluster = collect_python(folder);
  EXPECT_THAT(cluster.frames(), ElementsAre("clock_nanosleep"));
  EXPECT_TRUE(cluster.python_frames().empty());
  EXPECT_THAT(cluster.python_missing(), HasSubstr("py-spy"));
}

TEST_F(PythonStacks, PySpyThatHangs_IsKilledAndTheNativeStackStays) {
  make_program("py-spy", "exec /bin/sleep 1000");
  use_debugger("echo \"TID $4:\"; echo '#0  0x1 clock_nanosleep'");
  const StackCluster cluster = collect_python(folder, 2s);
  EXPECT_THAT(cluster.frames(), ElementsAre("clock_nanosleep"));
  EXPECT_EQ(cluster.python_missing(), "py-spy did not end in time");
  expect_alive_and_running();
}

TEST_F(PythonStacks, PySpyThatPrintsNonsense_SaysSo) {
  make_program("py-spy", "echo '[{\"os_thread_id\": '; exit 1");
  use_debugger("echo \"TID $4:\"; echo '#0  0x1 clock_nanosleep'");
  EXPECT_THAT(collect_python(folder).python_missing(), HasSubstr("py-spy printed no Python stack"));
}

}  // namespace
}  // namespace fleet
