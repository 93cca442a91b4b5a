// The guardian's handle of its OrphanWatchdog: when it starts, and the signals that it receives.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "base/file.h"
#include "node/guardian.h"
#include "transport/event_loop.h"
#include "transport/loop_descriptor.h"

namespace fleet {

// Not thread-safe: everything happens in the loop's thread, the process's only one.
class GuardianWatchdog {
 public:
  struct Handlers {
    std::function<void(pid_t)> on_started;
    std::function<void(int signal)> on_signal;  // a user has sent it to the watchdog
  };
  // alive, mark, job: as for OrphanWatchdog.
  GuardianWatchdog(EventLoop& loop, UniqueFd alive, std::string mark, std::string job,
                   Handlers handlers);

  // Starts it once, after a delay: the start and end of short ranks do not wait for a fork.
  void start_soon();
  // It is not needed, unless it runs already.
  void cancel_start() { timer_.cancel(); }
  pid_t pid() const { return watchdog_.pid(); }  // -1: there is none
  // A child was reaped.
  void on_child_ended(pid_t pid) { watchdog_.on_child_ended(pid); }

 private:
  void listen(UniqueFd signals);
  void read();

  const Handlers handlers_;
  LoopTimer timer_;
  OrphanWatchdog watchdog_;
  LoopDescriptor signals_;
  char bytes_[16];
};

}  // namespace fleet
