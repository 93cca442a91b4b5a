#include "ps/transport/shared_ring.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <ctime>

#include "base/cpu.h"

namespace fleet::ps {
namespace {

// Some microseconds: the other side is often about to be ready, but may need this core.
constexpr int kSpins = 200;

}  // namespace

size_t SharedRing::write(std::span<const std::byte> bytes) {
  const uint64_t at = written_.load(std::memory_order_relaxed) + unpublished_;
  const size_t free = writable();
  const size_t size = std::min(bytes.size(), free > unpublished_ ? free - unpublished_ : 0);
  const size_t offset = at % kCapacity, first = std::min(size, kCapacity - offset);
  std::memcpy(data() + offset, bytes.data(), first);
  std::memcpy(data(), bytes.data() + first, size - first);
  unpublished_ += size;
  return size;
}

// The fences pair with those of announce_sleep() and sleep_until_writable(): of two that store
// their own word and then load the other's, one at least sees the other.
bool SharedRing::publish() {
  if (unpublished_ == 0) return false;
  written_.store(written_.load(std::memory_order_relaxed) + unpublished_);
  unpublished_ = 0;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return reader_sleeps_.load() != 0 && reader_sleeps_.exchange(0) != 0;
}

void SharedRing::sleep_until_writable() {
  for (int i = 0; i < kSpins; ++i) {
    if (writable() > 0) return;
    spin_pause();
  }
  writer_sleeps_.store(1);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (writable() == 0) {
    const timespec a_while{0, 100'000'000};
    ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&writer_sleeps_), FUTEX_WAIT, 1, &a_while,
              nullptr, 0);
  }
  writer_sleeps_.store(0);
}

std::span<const std::byte> SharedRing::readable() const {
  const uint64_t read = read_.load(std::memory_order_relaxed);
  const uint64_t filled = std::min<uint64_t>(written_.load() - read, kCapacity);
  const size_t offset = read % kCapacity;
  return {data() + offset, std::min<size_t>(filled, kCapacity - offset)};
}

void SharedRing::consume(size_t bytes) {
  read_.store(read_.load(std::memory_order_relaxed) + bytes);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (writer_sleeps_.load() == 0) return;
  if (written_.load() - read_.load(std::memory_order_relaxed) <= kCapacity / 2) wake_writer();
}

bool SharedRing::announce_sleep() {
  for (int i = 0; i < kSpins; ++i) {
    if (!readable().empty()) return false;
    spin_pause();
  }
  reader_sleeps_.store(1);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (readable().empty()) return true;
  end_sleep();
  return false;
}

void SharedRing::wake_writer() {
  writer_sleeps_.store(0);
  ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&writer_sleeps_), FUTEX_WAKE, INT_MAX, nullptr,
            nullptr, 0);
}

}  // namespace fleet::ps
