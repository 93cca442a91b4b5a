// The 16-bit floating types on the host: their storage, and conversions from and to float.
// Arithmetic is in float; storing rounds to nearest even. Write y[i] = value with a float on the
// right: GCC vectorizes loops of that form, but not copies of a constructed object.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace fleet {

// The conversions on bit patterns. Words is uint32_t or a vector of them (GCC's vector extension),
// Floats is float or a vector of the same length; a 16-bit pattern is in the low half of its word.
// Branch-free, so that loops are vectorized. NaNs stay NaNs and become quiet.
template <typename Words>
[[gnu::always_inline]] inline void narrow_to_bfloat16(const Words& wide, Words& narrow) {
  const Words rounded = (wide + 0x7fff + ((wide >> 16) & 1)) >> 16;
  const Words quiet_nan = (wide >> 16) | 0x40;
  narrow = (wide & 0x7fffffff) > 0x7f800000 ? quiet_nan : rounded;
}

template <typename Floats, typename Words>
[[gnu::always_inline]] inline void narrow_to_float16(const Words& wide, Words& narrow) {
  const Words sign = (wide >> 16) & 0x8000, magnitude = wide & 0x7fffffff;
  const Words normal = ((magnitude - 0x38000000) + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  // Below 2^-14 the addition of 0.5 lets the adder round at the subnormals' last bit.
  const Floats shifted = __builtin_bit_cast(Floats, magnitude) + 0.5f;
  const Words subnormal = __builtin_bit_cast(Words, shifted) - 0x3f000000;
  narrow = magnitude < 0x38800000 ? subnormal : normal;
  narrow = magnitude >= 0x477ff000 ? Words{} + 0x7c00 : narrow;  // rounds to infinity
  narrow = magnitude > 0x7f800000 ? Words{} + 0x7e00 : narrow;   // NaN
  narrow |= sign;
}

template <typename Floats, typename Words>
[[gnu::always_inline]] inline void widen_float16(const Words& narrow, Words& wide) {
  const Words sign = (narrow & 0x8000) << 16, magnitude = narrow & 0x7fff;
  // A multiplication moves the exponent from bias 15 to 127 and also makes subnormals normal.
  // Infinities and NaNs get the largest exponent.
  const Words moved = magnitude << 13;
  const Floats scaled = __builtin_bit_cast(Floats, moved) * 0x1p112f;
  const Words special = moved | 0x7f800000;
  wide = (magnitude >= 0x7c00 ? special : __builtin_bit_cast(Words, scaled)) | sign;
}

// 8 bits of exponent, 7 of mantissa: float's range.
struct BFloat16 {
  uint16_t bits;

  BFloat16() = default;
  [[gnu::always_inline]] explicit BFloat16(float value) { *this = value; }
  [[gnu::always_inline]] BFloat16& operator=(float value) {
    uint32_t narrow;
    narrow_to_bfloat16(__builtin_bit_cast(uint32_t, value), narrow);
    bits = static_cast<uint16_t>(narrow);
    return *this;
  }
  [[gnu::always_inline]] operator float() const {
    return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16);
  }
};

// IEEE 754's binary16: 5 bits of exponent, 10 of mantissa, at most 65504.
struct Float16 {
  uint16_t bits;

  Float16() = default;
  [[gnu::always_inline]] explicit Float16(float value) { *this = value; }
  [[gnu::always_inline]] Float16& operator=(float value) {
    uint32_t narrow;
    narrow_to_float16<float>(__builtin_bit_cast(uint32_t, value), narrow);
    bits = static_cast<uint16_t>(narrow);
    return *this;
  }
  [[gnu::always_inline]] operator float() const {
    uint32_t wide;
    widen_float16<float>(static_cast<uint32_t>(bits), wide);
    return __builtin_bit_cast(float, wide);
  }
};

template <>
struct DTypeOf<Float16> {
  static constexpr DType value = DType::kFloat16;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::kBFloat16;
};

}  // namespace fleet
