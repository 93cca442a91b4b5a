// Caches a device's memory: takes it in large pieces and keeps them for reuse, since allocating and
// freeing on the device is slow and waits for all work.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <set>

#include "base/mutex.h"

namespace fleet {

// Bookkeeping only: it never accesses the memory. Thread-safe.
//
// Requests below kLarge are cut from pieces of kPiece bytes. Larger ones get their own pieces,
// rounded up. The rest of a piece serves further requests of its kind, and adjacent free blocks are
// merged. Completely free pieces return to the source when it, or the limit, is exhausted.
class CachingAllocator {
 public:
  static constexpr size_t kGranule = 512;  // alignment; request sizes are rounded up to it
  static constexpr size_t kLarge = size_t{1} << 20;
  static constexpr size_t kPiece = size_t{2} << 20;

  struct Source {
    std::function<void*(size_t bytes)> take;  // null if no memory is left
    std::function<void(void* piece)> give_back;
  };
  // limit: maximum number of bytes taken from the source.
  CachingAllocator(Source source, size_t limit);
  ~CachingAllocator();  // returns every piece, even if blocks were not freed
  CachingAllocator(const CachingAllocator&) = delete;

  // Null if the limit or the source is exhausted. bytes > 0.
  void* allocate(size_t bytes);
  // No work on the block may be pending.
  void free(void* block);
  void trim();  // returns completely free pieces to the source

  size_t limit() const { return limit_; }
  size_t used() const;       // in allocated blocks
  size_t taken() const;      // from the source
  size_t most_used() const;  // the maximum of used() so far

 private:
  struct Block {
    size_t bytes = 0;
    bool free = true, large = false;
    char* before = nullptr;  // neighbour in the same piece; null: first block of the piece
    char* behind = nullptr;
  };
  using Free = std::set<std::pair<size_t, char*>>;
  Free& free_of(const Block& block) FLEET_REQUIRES(mutex_) { return free_[block.large ? 1 : 0]; }
  void* reuse(size_t bytes, bool large) FLEET_REQUIRES(mutex_);
  bool take_piece(size_t bytes, bool large) FLEET_REQUIRES(mutex_);
  void split(char* at, size_t bytes) FLEET_REQUIRES(mutex_);
  void join(char* at, char* behind) FLEET_REQUIRES(mutex_);
  void give_back_free_pieces() FLEET_REQUIRES(mutex_);

  const Source source_;
  const size_t limit_;
  mutable Mutex mutex_;
  std::map<char*, Block> blocks_ FLEET_GUARDED_BY(mutex_);
  Free free_[2] FLEET_GUARDED_BY(mutex_);  // small and large pieces, by size
  size_t used_ FLEET_GUARDED_BY(mutex_) = 0;
  size_t taken_ FLEET_GUARDED_BY(mutex_) = 0;
  size_t most_used_ FLEET_GUARDED_BY(mutex_) = 0;
};

}  // namespace fleet
