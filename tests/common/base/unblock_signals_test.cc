#include "base/unblock_signals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fleet {
namespace {

// As if its starter had blocked every signal.
TEST(UnblockSignals, SignalsThatEndAProgram_ReachIt) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::signal(signal, SIG_DFL);
      sigset_t all;
      ::sigfillset(&all);
      ::sigprocmask(SIG_SETMASK, &all, nullptr);
      ::raise(signal);
      unblock_signals();
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << signal;
  }
}

}  // namespace
}  // namespace fleet
