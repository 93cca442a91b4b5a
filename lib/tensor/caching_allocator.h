// Memory of a device, taken from it in large pieces and kept for reuse: taking and giving back is
// slow there and waits for all work.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <set>

namespace fleet {

// Bookkeeping only: it never touches the memory. Thread-safe.
//
// Requests below kLarge are cut from pieces of kPiece bytes, larger ones get pieces of their own,
// rounded up; what is left over of a piece is used for further requests of its kind, and neighbours
// that are free become one again. Pieces that are wholly free go back to the source when it, or the
// limit, has no more.
class CachingAllocator {
 public:
  static constexpr size_t kGranule = 512;  // alignment, and what requests are rounded up to
  static constexpr size_t kLarge = size_t{1} << 20;
  static constexpr size_t kPiece = size_t{2} << 20;

  struct Source {
    std::function<void*(size_t bytes)> take;  // null where there is no more
    std::function<void(void* piece)> give_back;
  };
  // limit: of what is taken from the source, in bytes.
  CachingAllocator(Source source, size_t limit);
  ~CachingAllocator();  // gives every piece back, whether its blocks were freed or not
  CachingAllocator(const CachingAllocator&) = delete;

  // Null where neither the limit nor the source has so much. bytes > 0.
  void* allocate(size_t bytes);
  // Whoever frees a block knows that no work on it is left.
  void free(void* block);
  void trim();  // gives pieces back that are wholly free

  size_t limit() const { return limit_; }
  size_t used() const;       // in blocks that are handed out
  size_t taken() const;      // from the source
  size_t most_used() const;  // so far
  size_t free_bytes() const { return taken() - used(); }

 private:
  struct Block {
    size_t bytes = 0;
    bool free = true, large = false;
    char* before = nullptr;  // neighbour in the same piece; null: it begins here
    char* behind = nullptr;
  };
  using Free = std::set<std::pair<size_t, char*>>;
  Free& free_of(const Block& block) { return free_[block.large ? 1 : 0]; }
  void* reuse(size_t bytes, bool large);
  bool take_piece(size_t bytes, bool large);
  void split(char* at, size_t bytes);
  void join(char* at, char* behind);
  void trim_locked();

  const Source source_;
  const size_t limit_;
  mutable std::mutex mutex_;
  std::map<char*, Block> blocks_;
  Free free_[2];  // of small and of large pieces, by size
  size_t used_ = 0, taken_ = 0, most_used_ = 0;
};

}  // namespace fleet
