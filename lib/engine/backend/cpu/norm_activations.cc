// Normalization with an activation in blocks: the normalized values stay in the first cache, where
// a loop over them is vectorized (backend/cpu/simd_math.h).
#include "backend/cpu/norm_runs.h"
#include "backend/cpu/simd_math.h"
#include "ops/activation_formulas.h"

namespace fleet::cpu::norm_runs {
namespace {

template <typename T>
FLEET_SIMD void normalize_block(const T* x, const Terms& t, int64_t count, float* n) {
  const Tile mean = load(t.mean), factor = load(t.factor), bias = load(t.bias);
  const int64_t whole = count - count % kTileLanes;
  for (int64_t i = 0; i < whole; i += kTileLanes) {
    store(n + i, (load(x + i) - mean) * factor + bias);
  }
  for (int64_t i = whole, l = 0; i < count; ++i, ++l) {
    n[i] = (x[i] - t.mean[l]) * t.factor[l] + t.bias[l];
  }
}

template <typename F, typename T>
FLEET_SIMD void map_block(F function, const float* n, T* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] = function(n[i]);
}

template <typename F, typename T>
FLEET_SIMD void map_block(F function, const float* n, const T* dy, T* g, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) g[i] = function(n[i], dy[i]);
}

}  // namespace

Recomputed recomputed_of(const std::string& activation) {
  if (activation == "relu6") return Recomputed::kRelu6;
  if (activation == "silu") return Recomputed::kSilu;
  return activation == "hardswish" ? Recomputed::kHardSwish : Recomputed::kNone;
}

template <typename T>
void activate(const T* x, const Terms& terms, Recomputed activation, int64_t count, T* y) {
  float n[kBlock];
  normalize_block(x, terms, count, n);
  if (activation == Recomputed::kSilu) return map_block(Silu<SimdMath>(), n, y, count);
  if (activation == Recomputed::kRelu6) return map_block(Relu6(), n, y, count);
  map_block(HardSwish(), n, y, count);
}

template <typename T>
void activate_gradient(const T* x, const Terms& terms, Recomputed activation, const T* dy,
                       int64_t count, T* g) {
  float n[kBlock];
  normalize_block(x, terms, count, n);
  if (activation == Recomputed::kSilu) return map_block(SiluGrad<SimdMath>(), n, dy, g, count);
  if (activation == Recomputed::kRelu6) return map_block(Relu6Grad(), n, dy, g, count);
  map_block(HardSwishGrad(), n, dy, g, count);
}

template void activate(const float*, const Terms&, Recomputed, int64_t, float*);
template void activate(const BFloat16*, const Terms&, Recomputed, int64_t, BFloat16*);
template void activate_gradient(const float*, const Terms&, Recomputed, const float*, int64_t,
                                float*);
template void activate_gradient(const BFloat16*, const Terms&, Recomputed, const BFloat16*, int64_t,
                                BFloat16*);

}  // namespace fleet::cpu::norm_runs
