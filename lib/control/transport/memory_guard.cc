#include "transport/memory_guard.h"

#include <utility>

#include "base/process_memory.h"

namespace fleet {
namespace {

// A flood takes some 100 MB in this time.
constexpr std::chrono::milliseconds kCheckEvery{50};

}  // namespace

MemoryGuard::MemoryGuard(int64_t bytes, std::function<void()> exceeded)
    : limit_(process_memory().resident + bytes),
      exceeded_(std::move(exceeded)),
      ticker_([this] { return check(); }) {
  ticker_.due_by(std::chrono::steady_clock::now() + kCheckEvery);
}

MemoryGuard::~MemoryGuard() { ticker_.stop(); }

Ticker::Time MemoryGuard::check() {
  if (process_memory().resident > limit_) {
    thread_ = Thread("memory", std::exchange(exceeded_, nullptr));
    return Ticker::Time::max();
  }
  return std::chrono::steady_clock::now() + kCheckEvery;
}

}  // namespace fleet
