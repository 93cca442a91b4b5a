// A rank that dies is noticed on every kernel.
#include "comm/process_exit_watcher.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <future>
#include <vector>

#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;

constexpr std::chrono::seconds kDeadline(60);

pid_t sleeping_child() {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  return child;
}

int without_pidfd(int) {
  errno = ENOSYS;
  return -1;
}

int without_descriptors(int) {
  errno = EMFILE;
  return -1;
}

// What a watcher of this process and two others reports when the last one is killed. Nobody reaps
// it before.
std::vector<int> reported(int (*open_pidfd)(int pid)) {
  const pid_t lives = sleeping_child(), dies = sleeping_child();
  std::promise<std::vector<int>> died;
  std::vector<int> positions;
  {
    const ProcessExitWatcher watcher(
        {::getpid(), lives, dies},
        [&died](const std::vector<int>& ended) { died.set_value(ended); }, open_pidfd);
    ::kill(dies, SIGKILL);
    std::future<std::vector<int>> first = died.get_future();
    if (first.wait_for(kDeadline) == std::future_status::ready) positions = first.get();
  }
  ::kill(lives, SIGKILL);
  for (const pid_t child : {lives, dies}) ::waitpid(child, nullptr, 0);
  return positions;
}

TEST(ProcessExitWatcher, PidfdOrNot_ReportsTheProcessThatDied) {
  EXPECT_THAT(reported(nullptr), ElementsAre(2));
  EXPECT_THAT(reported(without_pidfd), ElementsAre(2));
}

TEST(ProcessExitWatcher, NoDescriptorIsLeft_IsAnErrorThatNamesTheLimit) {
  const pid_t child = sleeping_child();
  EXPECT_THAT(thrown_by([&] {
                ProcessExitWatcher(
                    {child}, [](const std::vector<int>&) {}, without_descriptors);
              }),
              Advises(::testing::HasSubstr("ulimit -n")));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace fleet
