#include "base/signal_thread.h"

#include <signal.h>
#include <unistd.h>

#include <mutex>
#include <thread>

namespace fleet {

void start_signal_thread(std::initializer_list<int> signals) {
  static std::once_flag once;
  std::call_once(once, [&] {
    sigset_t set;
    ::sigemptyset(&set);
    for (const int signal : signals) ::sigaddset(&set, signal);
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
    std::thread([set] {
      ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
      for (;;) ::pause();
    }).detach();
  });
}

}  // namespace fleet
