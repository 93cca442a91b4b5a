// Tiles: 16 elements as one value of the widest registers available, for loops inside FLEET_SIMD
// functions. In memory, elements are float or bfloat16 with any alignment; as a value, they are
// floats.
#pragma once

#include "backend/cpu/elementwise.h"

// 64-byte vectors stay inside always-inlined functions, so no ABI depends on them.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace fleet::cpu {

inline constexpr int64_t kTileLanes = 16;

using Tile = float __attribute__((vector_size(64), aligned(4), may_alias));
using TileFlags = int32_t __attribute__((vector_size(64)));
using TileWords = uint32_t __attribute__((vector_size(64)));
using TileHalves = uint16_t __attribute__((vector_size(32), aligned(2), may_alias));
using TileBytes = int8_t __attribute__((vector_size(16)));

FLEET_INLINE Tile load(const float* from) { return *reinterpret_cast<const Tile*>(from); }
FLEET_INLINE Tile load(const BFloat16* from) {
  const TileHalves narrow = *reinterpret_cast<const TileHalves*>(from);
  return reinterpret_cast<Tile>(__builtin_convertvector(narrow, TileWords) << 16);
}

FLEET_INLINE TileHalves narrowed(const Tile& value) {
  TileWords narrow;
  narrow_to_bfloat16(reinterpret_cast<TileWords>(value), narrow);
  return __builtin_convertvector(narrow, TileHalves);
}

FLEET_INLINE void store(float* to, const Tile& value) { *reinterpret_cast<Tile*>(to) = value; }
FLEET_INLINE void store(BFloat16* to, const Tile& value) {
  *reinterpret_cast<TileHalves*>(to) = narrowed(value);
}

// Converts flags (all bits of a lane, or none) to one bit per lane, and back.
FLEET_INLINE uint16_t bits_of(const TileFlags& flags) {
  const TileBytes bytes = __builtin_convertvector(flags, TileBytes);
#if defined(__SSE2__)
  using Chars = char __attribute__((vector_size(16)));
  return static_cast<uint16_t>(__builtin_ia32_pmovmskb128(reinterpret_cast<Chars>(bytes)));
#else
  uint16_t bits = 0;
  for (int l = 0; l < kTileLanes; ++l) bits |= static_cast<uint16_t>((bytes[l] & 1) << l);
  return bits;
#endif
}
FLEET_INLINE Tile where_bits(uint16_t bits, const Tile& value) {
  const TileFlags lanes = {1 << 0, 1 << 1, 1 << 2,  1 << 3,  1 << 4,  1 << 5,  1 << 6,  1 << 7,
                           1 << 8, 1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15};
  const TileFlags flags = (lanes & static_cast<int32_t>(bits)) != 0;
  return reinterpret_cast<Tile>(reinterpret_cast<TileFlags>(value) & flags);
}

}  // namespace fleet::cpu
