#include "base/signal_thread.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace fleet {
namespace {

std::atomic<pthread_t> handled_by{};
void note_thread(int) { handled_by = ::pthread_self(); }

// In a child: the threads of this program must keep their masks.
int handle_in_child() {
  ::signal(SIGUSR2, note_thread);
  start_signal_thread({SIGUSR2});
  std::atomic<pthread_t> started_later{};
  std::atomic<bool> end{false};
  std::thread later([&] {
    started_later = ::pthread_self();
    while (!end) std::this_thread::yield();
  });
  ::kill(::getpid(), SIGUSR2);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (handled_by.load() == pthread_t{} && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  end = true;
  later.join();
  const pthread_t by = handled_by;
  return by != pthread_t{} && by != ::pthread_self() && by != started_later.load() ? 0 : 1;
}

TEST(SignalThread, Handler_RunsOnNoOtherThread) {
  EXPECT_EXIT(::_exit(handle_in_child()), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace fleet
