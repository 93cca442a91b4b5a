// Memory that a launcher shares with one of its ranks, and values in it.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

#include "base/file.h"

namespace fleet {

// A file of the launcher that exists in memory only, as one end has mapped it. It begins with a
// number that stands for its layout.
class SharedMemory {
 public:
  SharedMemory() = default;  // none
  // The launcher's end: all zero, except for the number. kIo, with `of`: "progress".
  static SharedMemory create(const std::string& of, size_t bytes, uint64_t magic);
  // The rank's end; none if the file cannot be mapped, or has another layout.
  static SharedMemory open(const std::string& path, size_t bytes, uint64_t magic);
  // For this process alone, all zero. Throws std::bad_alloc.
  static SharedMemory unshared(size_t bytes);

  explicit operator bool() const { return memory_ != nullptr; }
  template <typename T>
  T& as() const {
    return *static_cast<T*>(memory_.get());
  }
  // Of create(): for processes of this user, valid as long as this object lives.
  int file() const { return file_.get(); }
  std::string path() const;

 private:
  struct Unmap {
    size_t bytes;
    void operator()(void* memory) const;
  };
  SharedMemory(UniqueFd file, size_t bytes);  // none, with errno set, on failure

  UniqueFd file_;
  std::unique_ptr<void, Unmap> memory_;
};

// A value in memory that one process stores and another loads: word by word, only lock-free
// atomics. Whether the words belong together is for the two ends to find out, by a counter.
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
