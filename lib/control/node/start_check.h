// The check before the ranks of a generation start, in the background, and the events that wait
// for its outcome.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/thread.h"
#include "rendezvous/client.h"
#include "rendezvous/types.h"
#include "transport/event_loop.h"

namespace fleet {

// Not thread-safe: everything but the check itself happens in the loop's thread. The destructor
// waits for the check.
class StartCheck {
 public:
  // "" or why the job cannot start, the same on every node; may throw Error.
  using Check = std::function<std::string(const Assignment&)>;
  struct Outcome {
    std::string failed;          // what Check returned
    std::optional<Error> error;  // what it threw
    // Events of the rendezvous that were held back. If there are some, this generation is over.
    std::vector<RendezvousEvent> held;
  };

  // check: empty: there is none, and run() must not be called.
  StartCheck(EventLoop& loop, Check check) : loop_(loop), check_(std::move(check)) {}
  explicit operator bool() const { return static_cast<bool>(check_); }

  // Calls `done` in the loop. The check of the preceding generation must have ended.
  void run(const Assignment& assignment, std::function<void(Outcome)> done);
  // Takes an event that must wait for the outcome; returns false, and leaves it, if it need not.
  //
  // A failing check fails on every node, and the first node to end leaves the job. Events that
  // arrive in between wait for this node's own outcome.
  bool hold(RendezvousEvent& event);

 private:
  EventLoop& loop_;
  const Check check_;
  bool checking_ = false;
  std::vector<RendezvousEvent> held_;
  Thread thread_;  // posts to the loop
};

}  // namespace fleet
