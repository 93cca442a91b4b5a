// A value that one thread publishes in shared memory, and other processes read at any time.
#pragma once

#include <atomic>
#include <cstdint>

#include "observe/shared_memory.h"

namespace fleet {

// `turn` is odd while the writer is storing. All zero: nothing was published.
template <typename T>
struct PublishedRecord {
  std::atomic<uint64_t> turn;
  AtomicWords<T> words;

  // By one thread.
  void publish(const T& value) {
    constexpr auto relaxed = std::memory_order_relaxed;
    const uint64_t before = turn.load(relaxed);
    turn.store(before + 1, relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    words.store(value);
    turn.store(before + 2, std::memory_order_release);
  }
  // False, without a change of `value`, if the writer was stopped in the middle of its stores.
  bool read(T* value) const {
    for (int i = 0; i < 100; ++i) {
      const uint64_t before = turn.load(std::memory_order_acquire);
      const T seen = words.load();
      std::atomic_thread_fence(std::memory_order_acquire);
      if (before % 2 != 0 || turn.load(std::memory_order_relaxed) != before) continue;
      *value = seen;
      return true;
    }
    return false;
  }
};

}  // namespace fleet
