// Rows as bytes, in snapshots and cold stores; little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "ps/tables/row_chunks.h"

namespace fleet::ps {

// In front of the floats of a row (RowLayout).
struct RecordHead {
  uint64_t id = 0;
  uint32_t version = 0;  // when the row changed last
  uint32_t used = 0;     // shrinks before the last use: the age is the number of shrinks since
};
static_assert(sizeof(RecordHead) == 16);

// An id without a row yet.
struct WaitingRecord {
  uint64_t id = 0;
  uint32_t count = 0;  // occurrences
  uint32_t used = 0;   // as of RecordHead
};
static_assert(sizeof(WaitingRecord) == 16);

inline size_t record_bytes(const RowLayout& layout) {
  return sizeof(RecordHead) + layout.floats() * sizeof(float);
}
inline RecordHead record_head(const std::byte* record) {
  RecordHead head;
  std::memcpy(&head, record, sizeof head);
  return head;
}

// All of a shard at one version, or its changes since an earlier one.
struct ShardContent {
  int shard = 0;
  bool full = true;                         // false: rows that are not among the records stay
  std::vector<std::byte> records = {};      // ascending by id
  std::vector<WaitingRecord> waiting = {};  // all of them, ascending by id; always replaced
};

// Applies changes to an earlier content of the shard.
void merge_content(ShardContent changes, size_t record_bytes, ShardContent* content);

}  // namespace fleet::ps
