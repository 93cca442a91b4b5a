// A process that gets no more threads, for tests.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>

namespace fleet {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadsCanBeRefused = false;  // they need address space of their own
#else
inline constexpr bool kThreadsCanBeRefused = true;
#endif

// The exit code of `body` in a child process whose address space has room for the stacks of at most
// `threads` more threads; -1 if it does not end within a minute. (The limit of processes does not
// bind root.)
inline int with_room_for_threads(int threads, const std::function<int()>& body) {
  // Larger than stacks that the C library keeps of earlier threads.
  constexpr rlim_t kStack = rlim_t{64} << 20, kHeap = rlim_t{16} << 20;
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    long long pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setstacksize(&attributes, kStack);
    ::pthread_setattr_default_np(&attributes);
    rlimit space{};
    ::getrlimit(RLIMIT_AS, &space);
    space.rlim_cur = static_cast<rlim_t>(pages) * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) +
                     static_cast<rlim_t>(threads) * kStack + kHeap;
    ::setrlimit(RLIMIT_AS, &space);
    ::_exit(body());
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace fleet
