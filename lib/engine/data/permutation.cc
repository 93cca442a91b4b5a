#include "data/permutation.h"

#include <algorithm>
#include <bit>

#include "data/random.h"

namespace fleet::data {

Permutation::Permutation(int64_t size, uint64_t key)
    : size_(static_cast<uint64_t>(size)),
      key_(key),
      half_(std::max(1, (static_cast<int>(std::bit_width(size_ - 1)) + 1) / 2)) {
  mask_ = (uint64_t{1} << half_) - 1;
}

int64_t Permutation::operator()(int64_t position) const {
  constexpr uint64_t kRounds = 4;
  auto value = static_cast<uint64_t>(position);
  do {
    uint64_t left = value >> half_, right = value & mask_;
    for (uint64_t round = 0; round < kRounds; ++round) {
      const uint64_t next = left ^ (mix(key_ + (round << 60) + right) & mask_);
      left = right;
      right = next;
    }
    value = left << half_ | right;
  } while (value >= size_);
  return static_cast<int64_t>(value);
}

}  // namespace fleet::data
