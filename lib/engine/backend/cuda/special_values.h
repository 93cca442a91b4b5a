// Detects infinities and NaNs, which have all exponent bits set, among the elements of a chunk. For
// .cu files.
#pragma once

#include "backend/cuda/tables.h"
#include "tensor/special_values.h"

namespace fleet::cuda {

template <typename Word, uint32_t exponent>
__device__ bool is_special(Word word) {
  return (word & exponent) == exponent;
}

// Whether there is one among the elements that this thread of the block checks.
template <typename Word, uint32_t exponent>
__device__ bool any_special_word(const Word* words, int64_t count) {
  constexpr int kWide = 16 / static_cast<int>(sizeof(Word));
  const int64_t whole = count / kWide * kWide;
  bool found = false;
  for (int64_t i = static_cast<int64_t>(threadIdx.x) * kWide; i < whole; i += kBlock * kWide) {
    const auto pack = load_pack<kWide>(words, i);
#pragma unroll
    for (int k = 0; k < kWide; ++k) found = found || is_special<Word, exponent>(pack.at[k]);
  }
  for (int64_t i = whole + threadIdx.x; i < count; i += kBlock) {
    found = found || is_special<Word, exponent>(words[i]);
  }
  return found;
}

// The same for float32, float16 or bfloat16, from element `begin` on.
__device__ inline bool any_special(const void* data, DType dtype, int64_t begin, int64_t count) {
  switch (dtype) {
    case DType::kFloat16:
      return any_special_word<uint16_t, kFloat16Exponent>(
          static_cast<const uint16_t*>(data) + begin, count);
    case DType::kBFloat16:
      return any_special_word<uint16_t, kBFloat16Exponent>(
          static_cast<const uint16_t*>(data) + begin, count);
    default:
      return any_special_word<uint32_t, kFloat32Exponent>(
          static_cast<const uint32_t*>(data) + begin, count);
  }
}

}  // namespace fleet::cuda
