// A loop in a thread of its own.
#pragma once

#include <string>

#include "base/thread.h"
#include "transport/event_loop.h"

namespace fleet {

// Lives as long as the process: never destroy it, because others may still post to the loop.
struct LoopThread {
  explicit LoopThread(const std::string& name)
      : thread(name, [this] { loop.run_until_stopped(); }) {}

  EventLoop loop;
  Thread thread;  // last: it uses the loop
};

}  // namespace fleet
