#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/process_tree.h"

namespace fleet {
namespace {

pid_t start_waiting() {
  const pid_t pid = ::fork();
  if (pid == 0) {
    for (;;) ::pause();
  }
  return pid;
}

// Until it has ended, without taking it away.
void kill_and_wait(pid_t pid) {
  ::kill(pid, SIGKILL);
  siginfo_t info;
  ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT);
}

TEST(ExitOrder, Children_AreReportedInTheOrderOfTheirEnds) {
  ExitOrder order;
  std::vector<pid_t> pids;
  for (int i = 0; i < 5; ++i) order.watch(pids.emplace_back(start_waiting()));
  EXPECT_THAT(order.take(), ::testing::IsEmpty());
  for (const int i : {3, 0, 4}) kill_and_wait(pids[i]);
  EXPECT_THAT(order.take(), ::testing::ElementsAre(pids[3], pids[0], pids[4]));
  EXPECT_THAT(order.take(), ::testing::IsEmpty());
  for (const int i : {2, 1}) kill_and_wait(pids[i]);
  EXPECT_THAT(order.take(), ::testing::ElementsAre(pids[2], pids[1]));
  for (const pid_t pid : pids) EXPECT_EQ(::waitpid(pid, nullptr, 0), pid);
}

}  // namespace
}  // namespace fleet
