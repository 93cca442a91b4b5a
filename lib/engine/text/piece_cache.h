// Ids of pieces that were encoded before: most pieces of a text are words that came already.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace fleet::text {

// Belongs to one thread and one tokenizer. Takes at most about 6 MiB; forgets everything when it is
// full.
class PieceCache {
 public:
  static constexpr size_t kLongestPiece = 255;

  uint64_t owner() const { return owner_; }
  // Forgets everything. owner: number of the tokenizer.
  void reset(uint64_t owner) {
    owner_ = owner;
    slots_.assign(kSlots, Slot{});
    pool_.clear();
  }

  // hash: hash_of(piece). nullptr: not there.
  const uint32_t* find(std::string_view piece, uint64_t hash, size_t* count) const {
    for (size_t i = 0; i < kProbes; ++i) {
      const Slot& slot = slots_[(hash + i) & (kSlots - 1)];
      if (slot.tag != tag_of(hash, piece)) continue;
      const uint32_t* entry = pool_.data() + slot.at;
      if (std::memcmp(entry + slot.count, piece.data(), piece.size()) != 0) continue;
      *count = slot.count;
      return entry;
    }
    return nullptr;
  }

  // piece: at most kLongestPiece bytes, and not empty.
  void add(std::string_view piece, uint64_t hash, std::span<const uint32_t> ids) {
    const size_t words = ids.size() + (piece.size() + 3) / 4;
    if (pool_.size() + words > kPoolWords) reset(owner_);
    size_t at = hash & (kSlots - 1);
    for (size_t i = 0; i < kProbes; ++i) {
      const size_t candidate = (hash + i) & (kSlots - 1);
      if (slots_[candidate].tag == 0) {
        at = candidate;
        break;
      }
    }
    slots_[at] = {tag_of(hash, piece), static_cast<uint32_t>(pool_.size()),
                  static_cast<uint32_t>(ids.size())};
    pool_.insert(pool_.end(), ids.begin(), ids.end());
    const size_t text_at = pool_.size();
    pool_.resize(text_at + (piece.size() + 3) / 4);
    std::memcpy(pool_.data() + text_at, piece.data(), piece.size());
  }

 private:
  static constexpr size_t kSlots = size_t{1} << 16, kProbes = 4;
  static constexpr size_t kPoolWords = size_t{1} << 20;
  struct Slot {
    uint64_t tag = 0;  // hash and length; 0: empty
    uint32_t at = 0, count = 0;
  };
  // The length is part of it, so that a comparison reads no further than the text that is kept.
  static uint64_t tag_of(uint64_t hash, std::string_view piece) {
    return (hash & ~uint64_t{255}) | piece.size();
  }

  uint64_t owner_ = 0;
  std::vector<Slot> slots_;
  std::vector<uint32_t> pool_;  // entries: ids, then the text
};

}  // namespace fleet::text
