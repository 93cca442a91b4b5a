// Infinities and NaNs among the elements of a chunk: they have all bits of the exponent. For .cc
// files.
#pragma once

#include "backend/cpu/optim_chunks.h"

namespace fleet::cpu {

template <typename Word, Word kExponent>
FLEET_INLINE bool any_special_word(const void* data, int64_t count) {
  const Word* words = static_cast<const Word*>(data);
  Word found = 0;
#pragma omp simd reduction(| : found)
  for (int64_t i = 0; i < count; ++i) found |= (words[i] & kExponent) == kExponent;
  return found != 0;
}

static FLEET_SIMD bool special_float32(const void* data, int64_t count) {
  return any_special_word<uint32_t, 0x7f800000>(data, count);
}
static FLEET_SIMD bool special_bfloat16(const void* data, int64_t count) {
  return any_special_word<uint16_t, 0x7f80>(data, count);
}
static FLEET_SIMD bool special_float16(const void* data, int64_t count) {
  return any_special_word<uint16_t, 0x7c00>(data, count);
}

// Of one of float32, bfloat16, float16.
inline bool any_special(const TypedChunk& chunk) {
  switch (chunk.dtype) {
    case DType::kBFloat16:
      return special_bfloat16(chunk.data, chunk.count);
    case DType::kFloat16:
      return special_float16(chunk.data, chunk.count);
    default:
      return special_float32(chunk.data, chunk.count);
  }
}

}  // namespace fleet::cpu
