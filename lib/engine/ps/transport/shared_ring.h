// A ring of bytes in shared memory, from one writer to one reader.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace fleet::ps {

// At the start of its memory, which is zero before the first use. The bytes follow. Each function
// is for one thread of one process: the writer's or the reader's. The functions that wait for the
// other side are the caller's.
class SharedRing {
 public:
  // Fits into a core's cache together with the memory at its other end.
  static constexpr size_t kCapacity = size_t{1} << 20;
  static constexpr size_t kHeaderBytes = 4096;
  static constexpr size_t kBytes = kHeaderBytes + kCapacity;

  // --- the writer ---

  size_t writable() const {
    const uint64_t used = written_.load(std::memory_order_relaxed) - read_.load();
    return used > kCapacity ? 0 : kCapacity - used;
  }
  // Copies as much as fits; returns its size. The reader sees it after publish().
  size_t write(std::span<const std::byte> bytes);
  // Whether the reader sleeps and must be woken.
  bool publish();
  // Sleeps until half of the ring is writable, wake_writer(), or for a while.
  void sleep_until_writable();

  // --- the reader ---

  // The next contiguous bytes.
  std::span<const std::byte> readable() const;
  // The bytes that the writer may overwrite; wakes it if it waits for them.
  void consume(size_t bytes);
  // The reader is about to sleep. False: it must not, there is something to read.
  bool announce_sleep();
  void end_sleep() { reader_sleeps_.store(0); }

  void wake_writer();

 private:
  std::byte* data() { return reinterpret_cast<std::byte*>(this) + kHeaderBytes; }
  const std::byte* data() const { return const_cast<SharedRing*>(this)->data(); }

  alignas(128) std::atomic<uint64_t> written_;
  uint64_t unpublished_;  // the writer's own: bytes after written_
  alignas(128) std::atomic<uint64_t> read_;
  alignas(128) std::atomic<uint32_t> reader_sleeps_;
  alignas(128) std::atomic<uint32_t> writer_sleeps_;
};
static_assert(sizeof(SharedRing) <= SharedRing::kHeaderBytes);

}  // namespace fleet::ps
