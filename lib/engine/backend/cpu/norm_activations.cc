// Normalization with an activation in blocks: the normalized values stay in the first cache, where
// a loop over them is vectorized (backend/cpu/simd_math.h).
#include "backend/cpu/norm_runs.h"
#include "backend/cpu/simd_math.h"
#include "ops/activation_formulas.h"

namespace fleet::cpu::norm_runs {
namespace {

// Into n without gaps between rows.
template <bool single, typename T>
FLEET_INLINE void normalize_as(const Span& s, const T* x, const Terms& t, float* n) {
  const int64_t stride = Span::known<single>(s.stride);
  const int64_t length = Span::known<single>(s.columns * kTileLanes);
  struct Constants {
    Tile mean, factor, bias;
  };
  const auto terms = [=](int64_t lane) __attribute__((always_inline)) {
    return Constants{load(t.mean + lane), load(t.factor + lane), load(t.bias + lane)};
  };
  for_each_tile<single>(
      s, terms, [=](int64_t row, int64_t lane, const Constants& t) __attribute__((always_inline)) {
        store(n + row * length + lane,
              (load(x + row * stride + lane) - t.mean) * t.factor + t.bias);
      });
  const T* tail = x + s.rows * stride;
  for (int64_t l = 0; l < s.tail; ++l) {
    n[s.rows * length + l] = (tail[l] - t.mean[l]) * t.factor[l] + t.bias[l];
  }
}

template <typename T>
FLEET_SIMD void normalize_block(const Span& span, const T* x, const Terms& terms, float* n) {
  with_columns(
      span.columns, [&]<bool single>() __attribute__((always_inline)) {
        normalize_as<single>(span, x, terms, n);
      });
}

template <typename F, typename T>
FLEET_SIMD void map_block(F function, const Span& span, const float* n, T* y) {
  const int64_t length = span.columns * kTileLanes, all = span.rows * length + span.tail;
  const bool has_gaps = span.stride != length;
  for (int64_t begin = 0; begin < all; begin += has_gaps ? length : all) {
    const int64_t count = has_gaps ? std::min(length, all - begin) : all;
    T* to = y + begin / length * span.stride;
    const float* from = n + begin;
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) to[i] = function(from[i]);
  }
}

// Gradients and the rows they are stored in.
template <typename T>
struct Slopes {
  const T* dy;
  int64_t dy_stride;
  T* g;
  int64_t g_stride;
};

template <typename F, typename T>
FLEET_SIMD void map_block(F function, const Span& span, const float* n, const Slopes<T>& s) {
  const int64_t length = span.columns * kTileLanes, all = span.rows * length + span.tail;
  const bool has_gaps = s.dy_stride != length || s.g_stride != length;
  for (int64_t begin = 0; begin < all; begin += has_gaps ? length : all) {
    const int64_t count = has_gaps ? std::min(length, all - begin) : all;
    const T* dy = s.dy + begin / length * s.dy_stride;
    T* g = s.g + begin / length * s.g_stride;
    const float* from = n + begin;
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) g[i] = function(from[i], dy[i]);
  }
}

}  // namespace

Recomputed recomputed_of(const std::string& activation) {
  if (activation == "relu6") return Recomputed::kRelu6;
  if (activation == "silu") return Recomputed::kSilu;
  return activation == "hardswish" ? Recomputed::kHardSwish : Recomputed::kNone;
}

template <typename T>
void activate(const Span& span, const T* x, const Terms& terms, Recomputed activation, T* y) {
  float n[kLongestBlock];
  normalize_block(span, x, terms, n);
  if (activation == Recomputed::kSilu) return map_block(Silu<SimdMath>(), span, n, y);
  if (activation == Recomputed::kRelu6) return map_block(Relu6(), span, n, y);
  map_block(HardSwish(), span, n, y);
}

template <typename T>
void activate_gradient(const Span& span, const T* x, const Terms& terms, Recomputed activation,
                       const T* dy, int64_t dy_stride, T* g, int64_t g_stride) {
  float n[kLongestBlock];
  normalize_block(span, x, terms, n);
  const Slopes<T> slopes{dy, dy_stride, g, g_stride};
  if (activation == Recomputed::kSilu) return map_block(SiluGrad<SimdMath>(), span, n, slopes);
  if (activation == Recomputed::kRelu6) return map_block(Relu6Grad(), span, n, slopes);
  map_block(HardSwishGrad(), span, n, slopes);
}

template void activate(const Span&, const float*, const Terms&, Recomputed, float*);
template void activate(const Span&, const BFloat16*, const Terms&, Recomputed, BFloat16*);
template void activate_gradient(const Span&, const float*, const Terms&, Recomputed, const float*,
                                int64_t, float*, int64_t);
template void activate_gradient(const Span&, const BFloat16*, const Terms&, Recomputed,
                                const BFloat16*, int64_t, BFloat16*, int64_t);

}  // namespace fleet::cpu::norm_runs
