// Tokens and their ids, and the merges of BPE.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fleet::text {

// A fast hash of a few bytes. Not for data of an enemy: tables bound their own probing.
uint64_t hash_of(std::string_view bytes);

// Ids are below this, so that tables by id stay small.
inline constexpr int64_t kMostIds = int64_t{1} << 23;

// Const member functions may be called by several threads at once.
class Vocabulary {
 public:
  explicit Vocabulary(size_t expected = 0);
  // The last one counts if a token comes twice. id < kMostIds.
  void add(std::string_view token, uint32_t id);
  std::optional<uint32_t> find(std::string_view token) const;
  std::optional<std::string_view> token(uint32_t id) const;
  size_t size() const { return by_id_.size(); }  // one more than the largest id
  size_t longest() const { return longest_; }    // bytes of the longest token

 private:
  static constexpr uint32_t kNone = 0xFFFFFFFF;
  struct Entry {
    size_t offset;
    uint32_t length, id;
  };
  std::string_view text(const Entry& entry) const {
    return std::string_view(pool_).substr(entry.offset, entry.length);
  }
  void grow();

  std::string pool_;
  std::vector<Entry> entries_;
  std::vector<uint32_t> slots_;  // numbers of entries; a power of two of them
  std::vector<uint32_t> by_id_;
  size_t longest_ = 0;
};

// (left, right) -> rank and id of the merged token.
class MergeTable {
 public:
  // rank << 32 | id, so that the smallest value is the merge to do first.
  using Merge = uint64_t;
  static constexpr Merge kNone = ~uint64_t{0};

  explicit MergeTable(size_t expected);
  // The last one counts if a pair comes twice.
  void add(uint32_t left, uint32_t right, uint32_t rank, uint32_t id);
  Merge find(uint32_t left, uint32_t right) const {
    const uint64_t key = uint64_t{left} << 32 | right;
    for (size_t at = slot_of(key);; at = (at + 1) & mask_) {
      if (slots_[at].key == key) return slots_[at].merge;
      if (slots_[at].key == kNone) return kNone;
    }
  }

 private:
  struct Slot {
    uint64_t key = kNone;
    Merge merge = kNone;
  };
  size_t slot_of(uint64_t key) const {
    return static_cast<size_t>((key * 0x9E3779B97F4A7C15u) >> shift_);
  }

  std::vector<Slot> slots_;
  size_t mask_, used_ = 0;
  int shift_;
};

}  // namespace fleet::text
