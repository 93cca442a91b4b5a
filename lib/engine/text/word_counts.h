// How often each piece of text occurs in a corpus: what a tokenizer is trained on.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"

namespace fleet::text {

// A table of words and their counts for one thread. Words are any bytes, shorter than 4 GiB.
class WordTable {
 public:
  struct Entry {
    uint64_t hash = 0;
    uint64_t begin = 0;  // in the bytes of all words
    uint64_t count = 0;  // 0: an empty slot
    uint32_t bytes = 0;
  };

  void add(std::string_view word, uint64_t count = 1);
  void clear();
  size_t size() const { return size_; }
  size_t bytes() const { return bytes_.size(); }  // bytes of all words
  // With empty slots, in no order.
  const std::vector<Entry>& slots() const { return slots_; }
  // Valid until the next add().
  std::string_view word(const Entry& entry) const {
    return std::string_view(bytes_).substr(entry.begin, entry.bytes);
  }

 private:
  friend class WordCounts;
  void add_hashed(std::string_view word, uint64_t hash, uint64_t count);
  void grow();

  std::vector<Entry> slots_;
  std::string bytes_;
  size_t size_ = 0;
};

struct WordCount {
  std::string_view word;
  uint64_t count = 0;
};

// The sum of the tables of several threads. Memory: one copy of each different word.
class WordCounts {
 public:
  // Adds a table. Several threads may call it.
  void add(const WordTable& table);
  // The words sorted by their bytes, so that what follows does not depend on threads. Views are
  // valid while this object lives and add() is not called.
  std::vector<WordCount> words() const;

 private:
  static constexpr size_t kShards = 64;
  struct Shard {
    mutable Mutex mutex;
    WordTable table FLEET_GUARDED_BY(mutex);
  };
  std::array<Shard, kShards> shards_;
};

}  // namespace fleet::text
