// A hash table from ids to 32-bit words, for one virtual shard.
//
// Buckets of a cache line hold five ids each and are at most 85 % full: 15.1 to 15.5 bytes per id.
// An index grows by a thirty-second, so that its size follows the number of ids closely, and only
// one shard's index exists twice while it grows.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "ps/tables/block_arena.h"

namespace fleet::ps {

// The word of an id: its row, or its occurrences so far while it waits for admission. Both have an
// age: the number of shrinks since the last use, at most kMaxAge.
class IndexWord {
 public:
  static constexpr uint32_t kMaxAge = 511;
  static constexpr uint32_t kMaxValue = (1u << 22) - 2;  // slots and counts
  static constexpr uint32_t kEmpty = 0xFFFFFFFF;         // in a bucket: no id
  static uint32_t row(uint32_t slot, uint32_t age) { return capped(age) << kAgeShift | slot; }
  static uint32_t waiting(uint32_t count, uint32_t age) {
    return kWaiting | capped(age) << kAgeShift | std::min(count, kMaxValue);
  }
  static bool is_row(uint32_t word) { return (word & kWaiting) == 0; }
  static uint32_t value(uint32_t word) { return word & kValueMask; }  // slot or count
  static uint32_t age(uint32_t word) { return (word >> kAgeShift) & kMaxAge; }
  static uint32_t with_age(uint32_t word, uint32_t age) {
    return (word & ~(kMaxAge << kAgeShift)) | capped(age) << kAgeShift;
  }

 private:
  static constexpr uint32_t kAgeShift = 22, kWaiting = 1u << 31, kValueMask = (1u << 22) - 1;
  static uint32_t capped(uint32_t age) { return std::min(age, kMaxAge); }
};

// Not thread-safe, except for prefetch(). hash: mix_id(id).
class RowIndex {
 public:
  static constexpr size_t kBlockBytes = 4096;  // the arena's blocks

  explicit RowIndex(BlockArena& arena) : arena_(arena) {}
  ~RowIndex();
  RowIndex(const RowIndex&) = delete;
  RowIndex& operator=(const RowIndex&) = delete;

  // The word of this id, or nullptr. Valid until the next insert() or retain().
  uint32_t* find(uint64_t id, uint64_t hash);
  // The id must be absent.
  void insert(uint64_t id, uint64_t hash, uint32_t word);
  // Loads the bucket into the cache. Any thread, without a lock.
  void prefetch(uint64_t hash) const;
  size_t size() const { return size_; }
  size_t buckets() const { return buckets_.load(std::memory_order_relaxed); }

  // visit(uint64_t id, uint32_t& word)
  template <typename Visit>
  void for_each(Visit visit) {
    for (size_t at = 0; at < buckets(); ++at) {
      Bucket& bucket = *this->bucket(at);
      for (int i = 0; i < kWays; ++i) {
        if (bucket.words[i] != IndexWord::kEmpty) visit(bucket.ids[i], bucket.words[i]);
      }
    }
  }
  // Removes the ids for which keep(id, word&) is false, and gives up memory.
  template <typename Keep>
  void retain(Keep keep) {
    size_t kept = 0;
    for_each([&](uint64_t id, uint32_t& word) {
      if (keep(id, word)) {
        ++kept;
      } else {
        word = IndexWord::kEmpty;
      }
    });
    rebuild(buckets_for(kept), kept);
  }

 private:
  static constexpr int kWays = 5;
  struct alignas(64) Bucket {
    uint64_t ids[kWays];
    uint32_t words[kWays];
    uint32_t passed;  // not 0: an id was placed in a later bucket because this one was full
  };
  static_assert(sizeof(Bucket) == 64);
  static constexpr size_t kBucketsPerBlock = kBlockBytes / sizeof(Bucket);
  // Blocks of buckets. prefetch() may read a directory that has been replaced: all are kept.
  using Directory = std::unique_ptr<std::atomic<Bucket*>[]>;

  static size_t buckets_for(size_t ids);
  Bucket* bucket(size_t at) const {
    return directory_.load(std::memory_order_relaxed)[at / kBucketsPerBlock].load(
               std::memory_order_relaxed) +
           at % kBucketsPerBlock;
  }
  static size_t home(uint64_t hash, size_t buckets) {
    return ((hash & 0xFFFFFFFF) * buckets) >> 32;
  }
  void place(uint64_t id, uint64_t hash, uint32_t word);
  void rebuild(size_t buckets, size_t size);
  void reserve_directory(size_t blocks);

  BlockArena& arena_;
  std::atomic<std::atomic<Bucket*>*> directory_{nullptr};
  std::atomic<size_t> buckets_{0};
  size_t size_ = 0, capacity_ = 0;  // ids; more than `capacity_` need another size
  size_t directory_size_ = 0;       // blocks
  std::vector<Directory> directories_;
};

inline uint32_t* RowIndex::find(uint64_t id, uint64_t hash) {
  const size_t buckets = this->buckets();
  if (buckets == 0) return nullptr;
  size_t at = home(hash, buckets);
  for (size_t seen = 0; seen < buckets; ++seen) {
    Bucket& bucket = *this->bucket(at);
    for (int i = 0; i < kWays; ++i) {
      if (bucket.ids[i] == id && bucket.words[i] != IndexWord::kEmpty) return &bucket.words[i];
    }
    if (bucket.passed == 0) return nullptr;
    if (++at == buckets) at = 0;
  }
  return nullptr;
}

inline void RowIndex::prefetch(uint64_t hash) const {
  // Directories only grow, and one is stored before the count that needs it. A block that was freed
  // stays mapped.
  const size_t buckets = buckets_.load(std::memory_order_acquire);
  if (buckets == 0) return;
  std::atomic<Bucket*>* directory = directory_.load(std::memory_order_acquire);
  const size_t at = home(hash, buckets);
  const Bucket* block = directory[at / kBucketsPerBlock].load(std::memory_order_relaxed);
  __builtin_prefetch(block + at % kBucketsPerBlock);
}

}  // namespace fleet::ps
