// Memory in blocks of one size, for the many small growing parts of a table: it never fragments,
// and it grows without copies.
#pragma once

#include <cstddef>
#include <vector>

#include "base/mutex.h"

namespace fleet::ps {

// Any thread. Blocks are aligned to 64 bytes and stay mapped until the arena ends.
class BlockArena {
 public:
  // block_bytes: a multiple of 64. huge_pages: asks the kernel for pages of 2 MiB.
  BlockArena(size_t block_bytes, bool huge_pages);
  ~BlockArena();
  BlockArena(const BlockArena&) = delete;
  BlockArena& operator=(const BlockArena&) = delete;

  // Uninitialized. kNoMemory if the system has none.
  void* allocate();
  void free(void* block);
  size_t block_bytes() const { return block_bytes_; }
  // Bytes of all blocks that have been used at some time: the part of the arena that takes memory.
  size_t touched() const;

 private:
  struct Region {
    void* mapped;
    size_t bytes;
  };
  void add_region() FLEET_REQUIRES(mutex_);

  const size_t block_bytes_;
  const bool huge_pages_;
  mutable Mutex mutex_;
  std::vector<Region> regions_ FLEET_GUARDED_BY(mutex_);
  std::byte* next_ FLEET_GUARDED_BY(mutex_) = nullptr;  // never used memory of the last region
  size_t left_ FLEET_GUARDED_BY(mutex_) = 0;            // blocks
  void* freed_ FLEET_GUARDED_BY(mutex_) = nullptr;      // a list: each block begins with the next
  size_t touched_ FLEET_GUARDED_BY(mutex_) = 0;         // blocks
};

}  // namespace fleet::ps
