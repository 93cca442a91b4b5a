// The fleetrun process that fleetd starts for a job on its node.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "rendezvous/control_messages.h"
#include "rendezvous/event_loop.h"
#include "rendezvous/loop_descriptor.h"

namespace fleet {

// Runs in its own session without standard input, and dies with this process. Output arrives in
// pieces as it is written; nothing is read while paused. Not thread safe.
class LauncherProcess {
 public:
  using OnOutput = std::function<void(bool error, std::string_view text)>;

  // rdzv_port: as in a LaunchJob. Throws kUsage if the folder does not exist, kIo if the process
  // cannot start. Call it from the main thread: the launcher dies with the thread that started it.
  LauncherProcess(EventLoop& loop, const wire::JobRequest& request, int rdzv_port,
                  OnOutput on_output);
  pid_t pid() const { return pid_; }
  void signal(int number);  // ignored once it has ended
  void pause(bool paused);
  // Call after waitpid(): reads the rest of its pipes.
  void on_reaped();

 private:
  struct Pipe {
    Pipe(EventLoop& loop, bool is_error) : end(loop), error(is_error) {}
    LoopDescriptor end;
    bool error;
    bool waits = false, closed = false;
  };
  void wait(Pipe* pipe);
  bool read(Pipe* pipe);  // false: empty or closed

  OnOutput on_output_;
  Pipe output_, errors_;
  pid_t pid_ = -1;
  bool paused_ = false, reaped_ = false;
};

// Call at the start of every fleetrun: if a fleetd started it, it dies with that fleetd.
void die_with_fleetd();

}  // namespace fleet
