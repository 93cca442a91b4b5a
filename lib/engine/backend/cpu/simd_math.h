// Branch-free elementary functions, so that loops over them are vectorized. Accurate to a few units
// in the last place of float.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "backend/cpu/elementwise.h"

namespace fleet::cpu {

// After Cephes' expf. 0 below -87.3; above 88.3 it stays finite.
FLEET_INLINE float fast_exp(float x) {
  const float low = -87.3f, high = 88.3f;
  const float bounded = x < low ? low : (x > high ? high : x);  // keeps NaN
  const float magic = 12582912.0f;                              // 1.5 * 2^23: rounds to an integer
  const float shifted = bounded * 1.44269504088896341f + magic;
  const float n = shifted - magic;
  const float r = (bounded - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const int32_t exponent = (std::bit_cast<int32_t>(shifted) - 0x4B400000 + 127) << 23;
  return x < low ? 0.0f : p * std::bit_cast<float>(exponent);
}

// After Cephes' tanhf.
FLEET_INLINE float fast_tanh(float x) {
  const float z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  const float near = x + x * z * p;
  const float magnitude = std::fabs(x);
  const float far = std::copysign(1.0f - 2.0f / (fast_exp(2.0f * magnitude) + 1.0f), x);
  return magnitude < 0.625f ? near : far;
}

FLEET_INLINE float fast_sigmoid(float x) { return 1.0f / (1.0f + fast_exp(-x)); }

// A rational function on [-4, 4]; beyond, erf is 1 to float's precision (as in Eigen).
FLEET_INLINE float fast_erf(float x) {
  const float b = x < -4.0f ? -4.0f : (x > 4.0f ? 4.0f : x);
  const float z = b * b;
  float p = -2.72614225801306e-10f;
  p = p * z + 2.77068142495902e-08f;
  p = p * z - 2.10102402082508e-06f;
  p = p * z - 5.69250639462346e-05f;
  p = p * z - 7.34990630326855e-04f;
  p = p * z - 2.95459980854025e-03f;
  p = p * z - 1.60960333262415e-02f;
  float q = -1.45660718464996e-05f;
  q = q * z - 2.13374055278905e-04f;
  q = q * z - 1.68282697438203e-03f;
  q = q * z - 7.37332916720468e-03f;
  q = q * z - 1.42647390514189e-02f;
  return b * p / q;
}

// For ops/activation_formulas.h.
struct SimdMath {
  static FLEET_INLINE float exp(float x) { return fast_exp(x); }
  static FLEET_INLINE float tanh(float x) { return fast_tanh(x); }
  static FLEET_INLINE float erf(float x) { return fast_erf(x); }
  static FLEET_INLINE float sigmoid(float x) { return fast_sigmoid(x); }
};

// The parts of the stable softmax of one row, shared by softmax and its losses.
FLEET_INLINE float row_max(const float* x, int64_t count) {
  float largest = x[0];
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < count; ++i) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

}  // namespace fleet::cpu
