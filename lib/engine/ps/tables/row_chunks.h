// The rows of one virtual shard, by slot: chunks of about 4 KiB, so that memory follows the number
// of rows closely.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ps/tables/block_arena.h"

namespace fleet::ps {

// A row is float32: values [dim], then the rule's state [states]; then, if the settings need them,
// shows and clicks, and the time of the last update (uint32: seconds since 1970).
struct RowLayout {
  int dim = 0;
  int states = 0;
  bool scores = false;
  bool times = false;

  // Clicks follow the shows.
  size_t show_at() const { return static_cast<size_t>(dim) + static_cast<size_t>(states); }
  size_t time_at() const { return show_at() + (scores ? 2 : 0); }
  size_t floats() const { return time_at() + (times ? 1 : 0); }
  // Each chunk has rows, then a stamp for each. Powers of two, so that a slot is split by shifts.
  int chunk_shift() const {
    int shift = 6;
    while (shift > 0 && (floats() * sizeof(float) << shift) > 8192) --shift;
    return shift;
  }
  size_t chunk_bytes() const {
    const size_t bytes = (floats() * sizeof(float) + sizeof(uint16_t)) << chunk_shift();
    return (bytes + 63) / 64 * 64;
  }
};

// Slots are 0..count()-1. Not thread-safe.
class RowChunks {
 public:
  RowChunks(const RowLayout& layout, BlockArena& arena)
      : arena_(arena), floats_(layout.floats()), shift_(layout.chunk_shift()) {}
  ~RowChunks() { resize(0); }
  RowChunks(const RowChunks&) = delete;
  RowChunks& operator=(const RowChunks&) = delete;

  uint32_t count() const { return count_; }
  size_t floats() const { return floats_; }
  float* row(uint32_t slot) const { return chunks_[slot >> shift_] + within(slot) * floats_; }
  // The version of the last change, relative to the shard's base.
  uint16_t& stamp(uint32_t slot) const {
    float* stamps = chunks_[slot >> shift_] + (floats_ << shift_);
    return reinterpret_cast<uint16_t*>(stamps)[within(slot)];
  }
  void prefetch(uint32_t slot, size_t floats) const {
    const auto* from = reinterpret_cast<const char*>(row(slot));
    for (size_t at = 0; at < floats * sizeof(float); at += 64) __builtin_prefetch(from + at);
  }
  void prefetch_stamp(uint32_t slot) const { __builtin_prefetch(&stamp(slot), 1); }
  // The new row is uninitialized.
  uint32_t add() {
    if ((count_ >> shift_) == chunks_.size()) {
      if (chunks_.size() == chunks_.capacity()) {
        chunks_.reserve(chunks_.size() + std::max<size_t>(4, chunks_.size() / 8));
      }
      chunks_.push_back(static_cast<float*>(arena_.allocate()));
    }
    return count_++;
  }
  void copy(uint32_t from, uint32_t to) {
    std::copy_n(row(from), floats_, row(to));
    stamp(to) = stamp(from);
  }
  // Drops the last rows.
  void resize(uint32_t count) {
    count_ = std::min(count, count_);
    const size_t chunks = (count_ + (size_t{1} << shift_) - 1) >> shift_;
    while (chunks_.size() > chunks) {
      arena_.free(chunks_.back());
      chunks_.pop_back();
    }
  }

 private:
  size_t within(uint32_t slot) const { return slot & ((size_t{1} << shift_) - 1); }

  BlockArena& arena_;
  const size_t floats_;
  const int shift_;
  uint32_t count_ = 0;
  std::vector<float*> chunks_;
};

}  // namespace fleet::ps
