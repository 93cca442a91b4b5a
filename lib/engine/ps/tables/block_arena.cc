#include "ps/tables/block_arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/error.h"

namespace fleet::ps {
namespace {

constexpr size_t kRegionBytes = size_t{32} << 20, kHugePage = size_t{2} << 20;

}  // namespace

BlockArena::BlockArena(size_t block_bytes, bool huge_pages)
    : block_bytes_(block_bytes), huge_pages_(huge_pages) {
  FLEET_CHECK(block_bytes > 0 && block_bytes % 64 == 0, "blocks of an arena are not aligned");
}

BlockArena::~BlockArena() {
  for (const Region& region : regions_) ::munmap(region.mapped, region.bytes);
}

void* BlockArena::allocate() {
  const MutexLock lock(mutex_);
  if (freed_ != nullptr) {
    void* block = freed_;
    std::memcpy(&freed_, block, sizeof freed_);
    return block;
  }
  if (left_ == 0) add_region();
  void* block = next_;
  next_ += block_bytes_;
  --left_;
  ++touched_;
  return block;
}

void BlockArena::free(void* block) {
  const MutexLock lock(mutex_);
  std::memcpy(block, &freed_, sizeof freed_);
  freed_ = block;
}

size_t BlockArena::touched() const {
  const MutexLock lock(mutex_);
  return touched_ * block_bytes_;
}

void BlockArena::add_region() {
  const size_t bytes = std::max(kRegionBytes, block_bytes_) + kHugePage;
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    throw Error(ErrorCode::kNoMemory,
                "the system has no memory for another " + std::to_string(bytes >> 20) + " MiB",
                "sparse table", "use more servers, entry.kind 'count', or storage.kind 'rocksdb'");
  }
  regions_.push_back({mapped, bytes});
  const auto address = reinterpret_cast<uintptr_t>(mapped);
  const uintptr_t aligned = (address + kHugePage - 1) / kHugePage * kHugePage;
  const size_t usable = bytes - (aligned - address);
#ifdef MADV_HUGEPAGE
  // A refusal (a kernel without them) costs only speed.
  if (huge_pages_) ::madvise(reinterpret_cast<void*>(aligned), usable, MADV_HUGEPAGE);
#endif
  next_ = reinterpret_cast<std::byte*>(aligned);
  left_ = usable / block_bytes_;
}

}  // namespace fleet::ps
