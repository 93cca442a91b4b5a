#include "ps/transport/receive_memory.h"

#include <cstdint>
#include <cstdlib>
#include <map>
#include <new>
#include <utility>

#include "base/mutex.h"

namespace fleet::ps {
namespace {

constexpr size_t kPage = 4096;
// Smaller blocks come from the C library, which reuses them well.
constexpr size_t kSmall = 64 << 10;

struct Free {
  void operator()(std::byte* data) const { std::free(data); }
};
using Memory = std::unique_ptr<std::byte, Free>;

Memory allocate(size_t bytes) {
  const size_t unit = ReceiveMemory::kAlignment;
  if (bytes > SIZE_MAX - unit) throw std::bad_alloc();
  auto* data = static_cast<std::byte*>(std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit));
  if (!data) throw std::bad_alloc();
  return Memory(data);
}

}  // namespace

struct ReceiveMemory::Unused {
  explicit Unused(size_t limit) : limit(limit) {}

  // Memory for `bytes`, but not for much more; or null.
  Memory take(size_t bytes, size_t* capacity) {
    const MutexLock lock(mutex);
    const auto found = blocks.lower_bound(bytes);
    if (found == blocks.end() || found->first > bytes + bytes / 4) return nullptr;
    Memory memory = std::move(found->second);
    *capacity = found->first;
    kept -= found->first;
    blocks.erase(found);
    return memory;
  }
  void give_back(Memory memory, size_t capacity) {
    const MutexLock lock(mutex);
    if (capacity > limit) return;
    // The smallest go first: large ones are worth more.
    while (kept + capacity > limit) {
      kept -= blocks.begin()->first;
      blocks.erase(blocks.begin());
    }
    kept += capacity;
    blocks.emplace(capacity, std::move(memory));
  }

  const size_t limit;
  Mutex mutex;
  std::multimap<size_t, Memory> blocks FLEET_GUARDED_BY(mutex);
  size_t kept FLEET_GUARDED_BY(mutex) = 0;
};

ReceiveMemory::ReceiveMemory(size_t unused_bytes)
    : unused_(std::make_shared<Unused>(unused_bytes)) {}

ReceiveMemory& ReceiveMemory::shared() {
  static auto* const memory = new ReceiveMemory;
  return *memory;
}

ReceiveMemory::Block ReceiveMemory::take(size_t bytes) {
  Block block;
  block.size_ = bytes;
  if (bytes == 0) return block;
  if (bytes <= kSmall) {
    block.data_ = std::shared_ptr<std::byte>(allocate(bytes).release(), Free());
    return block;
  }
  size_t capacity = 0;
  Memory memory = unused_->take(bytes, &capacity);
  if (!memory) {
    if (bytes > SIZE_MAX - kPage) throw std::bad_alloc();
    capacity = (bytes + kPage - 1) / kPage * kPage;
    memory = allocate(capacity);
  }
  block.data_ = std::shared_ptr<std::byte>(
      memory.release(),
      [unused = unused_, capacity](std::byte* data) { unused->give_back(Memory(data), capacity); });
  return block;
}

}  // namespace fleet::ps
