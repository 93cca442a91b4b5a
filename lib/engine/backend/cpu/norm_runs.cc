#include "backend/cpu/norm_runs.h"

#include <algorithm>

namespace fleet::cpu::norm_runs {
namespace {

template <bool masked, typename T>
FLEET_INLINE Tile load_where(const T* from, const uint16_t* mask) {
  if constexpr (masked) return where_bits(*mask, load(from));
  return load(from);
}

FLEET_INLINE bool passes(const uint16_t* mask, int64_t i) {
  return mask[i / kTileLanes] >> (i % kTileLanes) & 1;
}

template <bool masked, typename T>
FLEET_INLINE float value_where(const T* from, const uint16_t* mask, int64_t i) {
  if constexpr (masked) return passes(mask, i) ? static_cast<float>(from[i]) : 0.0f;
  return from[i];
}

template <bool single, typename T>
FLEET_INLINE void add_moments_as(const Span& s, const T* x, const float* shift, double* sums,
                                 double* squares) {
  const int64_t stride = Span::known<single>(s.stride);
  const auto from = [=](int64_t lane) __attribute__((always_inline)) { return load(shift + lane); };
  const auto add = [=](int64_t row, int64_t lane, const Tile& from, Tile& sum, Tile& square)
      __attribute__((always_inline)) {
    const Tile value = load(x + row * stride + lane) - from;
    sum += value;
    square += value * value;
  };
  sum_tiles<single>(s, sums, squares, from, add);
  const T* tail = x + s.rows * stride;
  for (int64_t l = 0; l < s.tail; ++l) {
    const float value = tail[l] - shift[l];
    sums[l] += value;
    squares[l] += value * value;
  }
}

struct TermTiles {
  Tile mean, factor, bias;
};

template <bool single, bool added, bool relu, bool masked, typename T>
FLEET_INLINE void apply_as(const Span& s, const T* x, const T* z, const Terms& t, T* y,
                           uint16_t* mask) {
  const Tile zero = {};
  const int64_t stride = Span::known<single>(s.stride), words = stride / kTileLanes;
  const auto terms = [=](int64_t lane) __attribute__((always_inline)) {
    return TermTiles{load(t.mean + lane), load(t.factor + lane), load(t.bias + lane)};
  };
  for_each_tile<single>(
      s, terms, [=](int64_t row, int64_t lane, const TermTiles& t) __attribute__((always_inline)) {
        const int64_t i = row * stride + lane;
        Tile value = (load(x + i) - t.mean) * t.factor + t.bias;
        if constexpr (added) value += load(z + i);
        const TileFlags stopped = value <= zero;  // false for NaN, which passes as in PyTorch
        if constexpr (masked) mask[row * words + lane / kTileLanes] = bits_of(~stopped);
        if constexpr (relu) value = stopped ? zero : value;
        store(y + i, value);
      });
  uint16_t bits = 0;
  for (int64_t l = 0, i = s.rows * stride; l < s.tail; ++l, ++i) {
    float value = (x[i] - t.mean[l]) * t.factor[l] + t.bias[l];
    if constexpr (added) value += z[i];
    const bool stopped = value <= 0;
    y[i] = relu && stopped ? 0.0f : value;
    if constexpr (masked) {
      bits |= static_cast<uint16_t>(!stopped << (l % kTileLanes));
      mask[s.rows * words + l / kTileLanes] = bits;
      if (l % kTileLanes == kTileLanes - 1) bits = 0;
    }
  }
}

template <bool single, bool two, bool masked, bool more, typename T>
FLEET_INLINE void form_as(const Span& s, const T* a, const T* b, const uint16_t* mask, T* g,
                          int64_t g_stride) {
  const int64_t stride = Span::known<single>(s.stride), words = stride / kTileLanes;
  const int64_t to_stride = Span::known<single>(g_stride);
  const auto none = [](int64_t) __attribute__((always_inline)) { return 0; };
  for_each_tile<single>(
      s, none, [=](int64_t row, int64_t lane, int) __attribute__((always_inline)) {
        const int64_t i = row * stride + lane;
        const uint16_t* word = mask + row * words + lane / kTileLanes;
        Tile value = load_where<masked>(a + i, word);
        if constexpr (two) value += load_where<masked>(b + i, word);
        T* to = g + row * to_stride + lane;
        if constexpr (more) value += load(to);
        store(to, value);
      });
  const int64_t at = s.rows * stride;
  mask += masked ? s.rows * words : 0;
  for (int64_t l = 0; l < s.tail; ++l) {
    float value = value_where<masked>(a + at, mask, l);
    if constexpr (two) value += value_where<masked>(b + at, mask, l);
    T* to = g + s.rows * to_stride + l;
    if constexpr (more) value += *to;
    *to = value;
  }
}

template <bool single, bool masked, typename T>
FLEET_INLINE void add_products_as(const Span& s, const T* dy, int64_t dy_stride,
                                  const uint16_t* mask, const T* x, const float* mean, double* sums,
                                  double* products) {
  const int64_t stride = Span::known<single>(s.stride), words = stride / kTileLanes;
  const int64_t from_stride = Span::known<single>(dy_stride);
  const auto means = [=](int64_t lane) __attribute__((always_inline)) { return load(mean + lane); };
  const auto add = [=](int64_t row, int64_t lane, const Tile& mean, Tile& sum, Tile& product)
      __attribute__((always_inline)) {
    const Tile g =
        load_where<masked>(dy + row * from_stride + lane, mask + row * words + lane / kTileLanes);
    sum += g;
    product += g * (load(x + row * stride + lane) - mean);
  };
  sum_tiles<single>(s, sums, products, means, add);
  const T* tail = x + s.rows * stride;
  mask += masked ? s.rows * words : 0;
  for (int64_t l = 0; l < s.tail; ++l) {
    const float g = value_where<masked>(dy + s.rows * from_stride, mask, l);
    sums[l] += g;
    products[l] += g * (tail[l] - mean[l]);
  }
}

struct FactorTiles {
  Tile mean, a, b, c;
};

template <bool single, bool masked, typename T>
FLEET_INLINE void combine_as(const Span& s, const T* dy, const uint16_t* mask, const T* x,
                             const Factors& f, T* dx) {
  const int64_t stride = Span::known<single>(s.stride), words = stride / kTileLanes;
  const auto factors = [=](int64_t lane) __attribute__((always_inline)) {
    return FactorTiles{load(f.mean + lane), load(f.a + lane), load(f.b + lane), load(f.c + lane)};
  };
  for_each_tile<single>(
      s,
      factors, [=](int64_t row, int64_t lane, const FactorTiles& f) __attribute__((always_inline)) {
        const int64_t i = row * stride + lane;
        const Tile g = load_where<masked>(dy + i, mask + row * words + lane / kTileLanes);
        store(dx + i, g * f.a + ((load(x + i) - f.mean) * f.b + f.c));
      });
  const int64_t at = s.rows * stride;
  mask += masked ? s.rows * words : 0;
  for (int64_t l = 0; l < s.tail; ++l) {
    const float g = value_where<masked>(dy + at, mask, l);
    dx[at + l] = g * f.a[l] + ((x[at + l] - f.mean[l]) * f.b[l] + f.c[l]);
  }
}

}  // namespace

template <typename T>
FLEET_SIMD void add_moments(const Span& span, const T* x, const float* shift, double* sums,
                            double* squares) {
  with_columns(
      span.columns, [&]<bool single>() __attribute__((always_inline)) {
        add_moments_as<single>(span, x, shift, sums, squares);
      });
}

template <typename T>
FLEET_SIMD void apply(const Span& span, const T* x, const T* z, const Terms& terms, bool relu, T* y,
                      uint16_t* mask) {
  with_columns(
      span.columns, [&]<bool single>() __attribute__((always_inline)) {
        if (!relu) {
          z ? apply_as<single, true, false, false>(span, x, z, terms, y, mask)
            : apply_as<single, false, false, false>(span, x, z, terms, y, mask);
        } else if (z) {
          mask ? apply_as<single, true, true, true>(span, x, z, terms, y, mask)
               : apply_as<single, true, true, false>(span, x, z, terms, y, mask);
        } else {
          mask ? apply_as<single, false, true, true>(span, x, z, terms, y, mask)
               : apply_as<single, false, true, false>(span, x, z, terms, y, mask);
        }
      });
}

template <typename T>
FLEET_SIMD void form(const Span& span, const T* a, const T* b, const uint16_t* mask, bool more,
                     T* g, int64_t stride) {
  with_columns(
      span.columns, [&]<bool single>() __attribute__((always_inline)) {
        if (more) {
          mask ? form_as<single, false, true, true>(span, a, b, mask, g, stride)
               : form_as<single, false, false, true>(span, a, b, mask, g, stride);
        } else if (b) {
          mask ? form_as<single, true, true, false>(span, a, b, mask, g, stride)
               : form_as<single, true, false, false>(span, a, b, mask, g, stride);
        } else {
          mask ? form_as<single, false, true, false>(span, a, b, mask, g, stride)
               : form_as<single, false, false, false>(span, a, b, mask, g, stride);
        }
      });
}

template <typename T>
FLEET_SIMD void add_products(const Span& span, const T* dy, int64_t stride, const uint16_t* mask,
                             const T* x, const float* mean, double* sums, double* products) {
  with_columns(
      span.columns, [&]<bool single>() __attribute__((always_inline)) {
        mask ? add_products_as<single, true>(span, dy, stride, mask, x, mean, sums, products)
             : add_products_as<single, false>(span, dy, stride, mask, x, mean, sums, products);
      });
}

template <typename T>
FLEET_SIMD void combine(const Span& span, const T* dy, const uint16_t* mask, const T* x,
                        const Factors& f, T* dx) {
  with_columns(
      span.columns, [&]<bool single>() __attribute__((always_inline)) {
        mask ? combine_as<single, true>(span, dy, mask, x, f, dx)
             : combine_as<single, false>(span, dy, mask, x, f, dx);
      });
}

template void add_moments(const Span&, const float*, const float*, double*, double*);
template void apply(const Span&, const float*, const float*, const Terms&, bool, float*, uint16_t*);
template void form(const Span&, const float*, const float*, const uint16_t*, bool, float*, int64_t);
template void add_products(const Span&, const float*, int64_t, const uint16_t*, const float*,
                           const float*, double*, double*);
template void combine(const Span&, const float*, const uint16_t*, const float*, const Factors&,
                      float*);

template void add_moments(const Span&, const BFloat16*, const float*, double*, double*);
template void apply(const Span&, const BFloat16*, const BFloat16*, const Terms&, bool, BFloat16*,
                    uint16_t*);
template void form(const Span&, const BFloat16*, const BFloat16*, const uint16_t*, bool, BFloat16*,
                   int64_t);
template void add_products(const Span&, const BFloat16*, int64_t, const uint16_t*, const BFloat16*,
                           const float*, double*, double*);
template void combine(const Span&, const BFloat16*, const uint16_t*, const BFloat16*,
                      const Factors&, BFloat16*);

}  // namespace fleet::cpu::norm_runs
