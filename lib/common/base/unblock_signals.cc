#include "base/unblock_signals.h"

#include <signal.h>

#include <initializer_list>

namespace fleet {

void unblock_signals() {
  sigset_t wanted;
  ::sigemptyset(&wanted);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM}) {
    ::sigaddset(&wanted, signal);
  }
  ::pthread_sigmask(SIG_UNBLOCK, &wanted, nullptr);
}

}  // namespace fleet
