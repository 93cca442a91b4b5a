#include "node/launcher_signals.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

// A launcher's signals, with the control pipe of a starter.
struct ControlledLauncher {
  ControlledLauncher() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    starter = UniqueFd(ends[1]);
    signals.listen_to(UniqueFd(ends[0]));
  }
  // Sends these and closes the pipe; returns when all handlers have run.
  std::vector<std::string> after(const std::vector<int>& sent) {
    for (const int signal : sent) {
      const char byte = static_cast<char>(signal);
      EXPECT_EQ(::write(starter.get(), &byte, 1), 1);
    }
    starter.reset();
    loop.run();
    return log;
  }
  void note(const std::string& what) { log.push_back(what); }

  EventLoop loop;
  std::vector<std::string> log;
  UniqueFd starter;
  LauncherSignals signals{
      loop,
      {SIGTERM, SIGINT},
      {.on_stop = [this](int signal, auto) { note("stop " + std::to_string(signal)); },
       .on_suspend = [this] { note("suspend"); },
       .on_job_signal = [this](int signal) { note("job " + std::to_string(signal)); },
       .on_node_signal = [this](int signal) { note("node " + std::to_string(signal)); },
       .on_starter_lost = [this] { note("lost"); },
       .on_child = [this] { note("child"); }}};
};

TEST(LauncherSignals, SignalOfAUser_IsForTheRanksOfThisNode) {
  EXPECT_THAT(ControlledLauncher().after({SIGUSR1}),
              ElementsAre("node " + std::to_string(SIGUSR1), "lost"));
}

TEST(LauncherSignals, CopyOfAStop_IsNoSecondOne) {
  EXPECT_THAT(ControlledLauncher().after({SIGTERM, SIGTERM}),
              UnorderedElementsAre("lost", "stop " + std::to_string(SIGTERM)));
}

TEST(LauncherSignals, CtrlZ_Suspends) {
  EXPECT_THAT(ControlledLauncher().after({SIGTSTP}), ElementsAre("suspend", "lost"));
}

}  // namespace
}  // namespace fleet
