// The stable softmax of one row, shared by softmax and its losses.
#pragma once

#include "backend/cpu/simd_math.h"

namespace fleet::cpu {

FLEET_INLINE float row_max(const float* x, int64_t count) {
  float largest = x[0];
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < count; ++i) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

// sum of exp(x - largest)
FLEET_INLINE float row_exp_sum(const float* x, int64_t count, float largest) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) sum += fast_exp(x[i] - largest);
  return sum;
}

}  // namespace fleet::cpu
