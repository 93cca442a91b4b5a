// Draws from a discrete distribution in constant time (Vose, "A linear algorithm for generating
// random numbers with a given distribution", 1991). Internal to data.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fleet::data {

// Immutable: thread-safe.
class AliasTable {
 public:
  // weights: by index; not negative, at least one above 0, at most 2^32 - 1 of
  // them.
  explicit AliasTable(std::span<const double> weights);
  // An index for 64 random bits.
  int64_t draw(uint64_t bits) const {
    const auto index =
        static_cast<uint32_t>((static_cast<unsigned __int128>(bits) * keep_.size()) >> 64);
    return static_cast<uint32_t>(bits) < keep_[index] ? index : alias_[index];
  }

 private:
  std::vector<uint32_t> keep_;  // the index itself below this, else the alias
  std::vector<uint32_t> alias_;
};

}  // namespace fleet::data
