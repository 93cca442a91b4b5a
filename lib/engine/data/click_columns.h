// Columns of click data, and the ids of its features. Internal to data.
//
// `label` float32 [1], 0 or 1; `dense` float32 [D]; `ids` int64 [K, L]: K slots of up to L ids
// each, padded with -1; `weights` float32 [K, L]: the value of each id, 0 for padding. Columns of
// size 0 are missing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/config.h"
#include "data/random.h"
#include "tensor/column.h"

namespace fleet::data {

struct ClickShape {
  int64_t dense = 0;     // D: numbers of a row
  int64_t slots = 0;     // K
  int64_t longest = 1;   // L: ids of a slot
  bool weights = false;  // whether ids have values
};

// labelled: with `label`, which comes first.
std::vector<Column> click_columns(const ClickShape& shape, bool labelled);

// Where one row is written; null for columns that the shape lacks, and for the label of unlabelled
// rows.
struct ClickRow {
  float* label = nullptr;
  float* dense = nullptr;
  int64_t* ids = nullptr;
  float* weights = nullptr;
};
// The addresses of a sample's columns (Source::fill) by name.
ClickRow click_row(const ClickShape& shape, bool labelled, std::span<void* const> to);

// The hash of a feature: the same on every machine and in every version. slot: the number of its
// slot, from 0. value: the number that the data give; Criteo's hexadecimal texts are numbers, too.
// mix() is splitmix64's finaliser.
inline uint64_t hash_id(uint64_t slot, uint64_t value) { return mix(mix(slot) ^ value); }

// data.ids: the number of ids, which all slots share.
class IdSpace {
 public:
  // ids: 0: all 63 bits of the hash.
  explicit IdSpace(int64_t ids) : ids_(static_cast<uint64_t>(ids)) {}
  int64_t hashed(uint64_t slot, uint64_t value) const {
    const uint64_t hash = hash_id(slot, value);
    return static_cast<int64_t>(ids_ == 0 ? hash & INT64_MAX : hash % ids_);
  }
  // Whether the value itself is an id.
  bool contains(uint64_t value) const { return value < (ids_ == 0 ? uint64_t{1} << 63 : ids_); }
  int64_t size() const { return static_cast<int64_t>(ids_); }

 private:
  uint64_t ids_;
};

// The key "ids".
Schema id_space_keys();

}  // namespace fleet::data
