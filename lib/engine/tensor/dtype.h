// Element types.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fleet {

enum class DType : uint8_t { kFloat32, kFloat64, kFloat16, kBFloat16, kInt64, kInt32, kUInt8 };

size_t size_of(DType dtype);       // bytes per element
const char* name_of(DType dtype);  // "float32", ...
bool is_floating(DType dtype);

template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kFloat32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kFloat64;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::kInt64;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::kInt32;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::kUInt8;
};

// Infinities and NaNs have all exponent bits set.
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
