// Detection of infinities and NaNs, which have all exponent bits set.
#pragma once

#include <cstdint>

namespace fleet {

inline constexpr uint64_t kFloat64Exponent = 0x7ff0000000000000;
inline constexpr uint32_t kFloat32Exponent = 0x7f800000;
inline constexpr uint16_t kFloat16Exponent = 0x7c00;
inline constexpr uint16_t kBFloat16Exponent = 0x7f80;

// Whether any of these values, as words, is infinite or NaN. Vectorizable.
template <typename Word>
[[gnu::always_inline]] inline bool any_special(const Word* words, int64_t count, Word exponent) {
  Word found = 0;
  for (int64_t i = 0; i < count; ++i) found |= (words[i] & exponent) == exponent;
  return found != 0;
}

}  // namespace fleet
