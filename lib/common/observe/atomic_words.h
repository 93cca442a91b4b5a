// A value in memory that one process stores and another loads: word by word, only lock-free
// atomics. Whether the words belong together is for the two ends to find out, by a counter.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace fleet {

template <typename T>
struct AtomicWords {
  static_assert(sizeof(T) % sizeof(uint64_t) == 0 && std::is_trivially_copyable_v<T>);
  static_assert(std::atomic<uint64_t>::is_always_lock_free);
  using Array = std::array<uint64_t, sizeof(T) / sizeof(uint64_t)>;
  std::atomic<uint64_t> words[sizeof(T) / sizeof(uint64_t)];

  void store(const T& value) {
    const auto all = std::bit_cast<Array>(value);
    for (size_t i = 0; i < all.size(); ++i) words[i].store(all[i], std::memory_order_relaxed);
  }
  T load() const {
    Array all;
    for (size_t i = 0; i < all.size(); ++i) all[i] = words[i].load(std::memory_order_relaxed);
    return std::bit_cast<T>(all);
  }
};

}  // namespace fleet
