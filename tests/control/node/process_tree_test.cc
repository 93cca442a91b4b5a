#include "node/process_tree.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace fleet {
namespace {

using ::testing::HasSubstr;

// A thread in a system call that does not return keeps a killed process; its first thread is a
// zombie by then.
TEST(DescribeProcess, FirstThreadHasEnded_NamesTheStateOfTheThreadThatIsLeft) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::thread([] {
      for (;;) ::pause();
    }).detach();
    ::syscall(SYS_exit, 0);  // of this thread alone
  }
  ASSERT_GT(child, 0);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const auto waits = [&] {
    return process_state(child) == 'Z' &&
           describe_process(child).find("state S") != std::string::npos;
  };
  while (!waits() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(process_state(child), 'Z');
  EXPECT_THAT(describe_process(child), HasSubstr("state S"));
  ::kill(child, SIGKILL);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

}  // namespace
}  // namespace fleet
