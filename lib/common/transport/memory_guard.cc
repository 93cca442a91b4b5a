#include "transport/memory_guard.h"

#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/process_memory.h"

namespace fleet {
namespace {

// A flood takes some 100 MB in this time.
constexpr std::chrono::milliseconds kCheckEvery{50};
// If no thread can be created.
constexpr std::chrono::milliseconds kRetryAfter{1'000};

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
    try {
      thread_ = Thread("memory", exceeded_);
      return Ticker::Time::max();
    } catch (const Error& error) {
      spdlog::warn("{}", error.what());
      return std::chrono::steady_clock::now() + kRetryAfter;
    }
  }
  return std::chrono::steady_clock::now() + kCheckEvery;
}

}  // namespace fleet
