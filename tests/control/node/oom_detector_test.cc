#include "node/oom_detector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct OomWatchTest : ::testing::Test {
  OomWatchTest() {
    std::string pattern = ::testing::TempDir() + "fleet_oom.XXXXXX";
    folder = ::mkdtemp(pattern.data());
    set_count(3);
    std::ofstream(folder + "/log") << "6,1,1,-;Killed process 42 (old)\n";
  }
  ~OomWatchTest() override { std::filesystem::remove_all(folder); }
  void set_count(int count) {
    std::ofstream(folder + "/events") << "low 0\noom 9\noom_kill " << count << "\n";
  }
  void add_line(const std::string& line) {
    std::ofstream(folder + "/log", std::ios::app) << "3,2,2,-;" << line << "\n";
  }
  std::string explain(OomDetector& watch, int signal) {
    return explain_exit(watch, 42, signal, &oom);
  }
  std::string folder;
  bool oom = false;
};

TEST_F(OomWatchTest, CounterRises_IsOutOfMemory) {
  OomDetector watch(folder + "/events", "");
  set_count(4);
  EXPECT_THAT(explain(watch, SIGKILL), HasSubstr("out of memory"));
  EXPECT_TRUE(oom);
}

TEST_F(OomWatchTest, KernelsLineAboutIt_IsGiven) {
  OomDetector watch("", folder + "/log");
  add_line("Out of memory: Killed process 42 (python3) total-vm:1kB");
  EXPECT_THAT(explain(watch, SIGKILL), HasSubstr("Killed process 42 (python3) total-vm:1kB"));
  EXPECT_TRUE(oom);
}

TEST_F(OomWatchTest, OldEvents_DoNotCount) {
  OomDetector watch(folder + "/events", folder + "/log");
  explain(watch, SIGKILL);
  EXPECT_FALSE(oom);
}

TEST_F(OomWatchTest, EventsOfAnEarlierGeneration_DoNotCount) {
  OomDetector watch(folder + "/events", folder + "/log");
  set_count(4);
  add_line("Killed process 42 (python3)");
  explain(watch, SIGKILL);
  EXPECT_TRUE(oom);
  watch.begin();
  explain(watch, SIGKILL);
  EXPECT_FALSE(oom);
  set_count(5);
  explain(watch, SIGKILL);
  EXPECT_TRUE(oom);
}

TEST_F(OomWatchTest, AnotherPid_IsNotIt) {
  OomDetector watch("", folder + "/log");
  add_line("Killed process 421 (python3)");
  explain(watch, SIGKILL);
  EXPECT_FALSE(oom);
}

TEST_F(OomWatchTest, HelperOfARankKilled_IsMentioned) {
  OomDetector watch(folder + "/events", "");
  set_count(5);
  EXPECT_THAT(explain(watch, 0), AllOf(HasSubstr("2 processes"), HasSubstr("out of memory")));
  EXPECT_FALSE(oom);
}

TEST_F(OomWatchTest, NothingToSee_SaysNothing) {
  OomDetector watch("", "");
  EXPECT_FALSE(watch.is_available());
  EXPECT_EQ(explain(watch, SIGKILL), "");
}

}  // namespace
}  // namespace fleet
