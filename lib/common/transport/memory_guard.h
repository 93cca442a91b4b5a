// Watches the memory of a process whose port is open to everyone. gRPC limits what
// it holds of a call, but not how many calls wait to be handled.
#pragma once

#include <cstdint>
#include <functional>

#include "base/thread.h"
#include "transport/ticker.h"

namespace fleet {

class MemoryGuard {
 public:
  // Calls exceeded() once, on a thread of its own, when the process takes `bytes` more than now.
  MemoryGuard(int64_t bytes, std::function<void()> exceeded);
  ~MemoryGuard();  // waits for exceeded()
  MemoryGuard(const MemoryGuard&) = delete;

 private:
  Ticker::Time check();

  const int64_t limit_;
  std::function<void()> exceeded_;
  Thread thread_;
  Ticker ticker_;
};

}  // namespace fleet
