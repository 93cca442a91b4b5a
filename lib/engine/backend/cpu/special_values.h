// Detects infinities and NaNs among the elements of a chunk. For .cc files.
#pragma once

#include "backend/cpu/optim_chunks.h"
#include "tensor/special_values.h"

namespace fleet::cpu {

static FLEET_SIMD bool special_float32(const void* data, int64_t count) {
  return fleet::any_special(static_cast<const uint32_t*>(data), count, kFloat32Exponent);
}
static FLEET_SIMD bool special_bfloat16(const void* data, int64_t count) {
  return fleet::any_special(static_cast<const uint16_t*>(data), count, kBFloat16Exponent);
}
static FLEET_SIMD bool special_float16(const void* data, int64_t count) {
  return fleet::any_special(static_cast<const uint16_t*>(data), count, kFloat16Exponent);
}

// For chunks of float32, bfloat16 or float16.
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
