#include "node/process_handle.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "node/process_tree.h"
#include "tests/control/node/without_pidfd.h"

namespace fleet {
namespace {

// A child that ends only by a signal.
pid_t start_waiting_child() {
  const pid_t child = ::fork();
  if (child != 0) return child;
  for (;;) ::pause();
}

constexpr int kNoFilter = 77;

// What a command finds out about a child, as an exit code: 0 if all is right.
int check_handle() {
  const pid_t child = start_waiting_child();
  const std::string start = process_start_ticks(child);
  const ProcessHandle handle(child), named(child, start), other(child, "1");
  if (!handle.runs() || !named.runs()) return 1;
  if (other.runs() || other.signal(SIGKILL)) return 2;  // another process had that pid
  if (!named.signal(SIGTERM)) return 3;
  handle.wait();
  if (handle.runs() || named.runs()) return 4;  // a zombie has ended
  int status = 0;
  if (::waitpid(child, &status, 0) != child || WTERMSIG(status) != SIGTERM) return 5;
  if (handle.runs() || handle.signal(SIGTERM)) return 6;
  if (ProcessHandle(child).runs() || ProcessHandle(-1).runs()) return 7;
  return 0;
}

int in_child(const std::function<int()>& run) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(run());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ProcessHandle, Process_IsSignalledAndAwaited) { EXPECT_EQ(in_child(check_handle), 0); }

TEST(ProcessHandle, WithoutPidfd_DoesTheSame) {
  for (const int error : {ENOSYS, EPERM}) {
    const int code = in_child([&] { return forbid_pidfd(error) ? check_handle() : kNoFilter; });
    if (code == kNoFilter) GTEST_SKIP() << "the kernel has no seccomp filters";
    EXPECT_EQ(code, 0) << error;
  }
}

TEST(ProcessHandle, EndDescriptor_IsThereWithPidfdsOnly) {
  EXPECT_EQ(in_child([] {
              const UniqueFd end = ProcessHandle(::getpid()).end_descriptor();
              return end ? 0 : 1;
            }),
            0);
  const int code = in_child([] {
    if (!forbid_pidfd()) return kNoFilter;
    return ProcessHandle(::getpid()).end_descriptor() ? 1 : 0;
  });
  if (code == kNoFilter) GTEST_SKIP() << "the kernel has no seccomp filters";
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace fleet
