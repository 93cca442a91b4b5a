#include "backend/cpu/norm_runs.h"

#include <algorithm>

namespace fleet::cpu::norm_runs {
namespace {

// A mask has one word per tile of each run: bit l for element l.
template <bool masked, typename T>
FLEET_INLINE Tile load_where(const T* from, const uint16_t* mask) {
  if constexpr (masked) return where_bits(*mask, load(from));
  return load(from);
}

FLEET_INLINE bool passes(const uint16_t* mask, int64_t i) {
  return mask[i / kTileLanes] >> (i % kTileLanes) & 1;
}

constexpr int64_t whole_tiles(int64_t count) { return count - count % kTileLanes; }

template <bool added, bool relu, bool masked, typename T>
FLEET_INLINE void apply_as(const T* x, const T* z, const Terms& t, int64_t count, T* y,
                           uint16_t* mask) {
  const Tile mean = load(t.mean), factor = load(t.factor), bias = load(t.bias), zero = {};
  const int64_t whole = whole_tiles(count);
  for (int64_t i = 0; i < whole; i += kTileLanes) {
    Tile value = (load(x + i) - mean) * factor + bias;
    if constexpr (added) value += load(z + i);
    const TileFlags stopped = value <= zero;  // false for NaN, which passes as in PyTorch
    if constexpr (masked) mask[i / kTileLanes] = bits_of(~stopped);
    if constexpr (relu) value = stopped ? zero : value;
    store(y + i, value);
  }
  uint16_t bits = 0;
  for (int64_t l = 0; l < count - whole; ++l) {
    float value = (x[whole + l] - t.mean[l]) * t.factor[l] + t.bias[l];
    if constexpr (added) value += z[whole + l];
    const bool stopped = value <= 0;
    bits |= static_cast<uint16_t>(!stopped << l);
    y[whole + l] = relu && stopped ? 0.0f : value;
  }
  if (masked && whole < count) mask[whole / kTileLanes] = bits;
}

template <bool two, bool masked, bool more, typename T>
FLEET_INLINE void form_as(const T* a, const T* b, const uint16_t* mask, int64_t count, T* g) {
  const int64_t whole = whole_tiles(count);
  for (int64_t i = 0; i < whole; i += kTileLanes) {
    Tile value = load_where<masked>(a + i, mask + i / kTileLanes);
    if constexpr (two) value += load_where<masked>(b + i, mask + i / kTileLanes);
    if constexpr (more) value += load(g + i);
    store(g + i, value);
  }
  for (int64_t i = whole; i < count; ++i) {
    float value = a[i];
    if constexpr (two) value += b[i];
    if constexpr (masked) value = passes(mask, i) ? value : 0;
    if constexpr (more) value += g[i];
    g[i] = value;
  }
}

template <bool masked, typename T>
FLEET_INLINE void add_products_as(const T* dy, const uint16_t* mask, const T* x, const float* mean,
                                  int64_t count, double* sums, double* products) {
  const Tile from = load(mean);
  const int64_t whole = whole_tiles(count);
  Tile sum[4] = {}, product[4] = {};
  int64_t i = 0;
  for (; i + 4 * kTileLanes <= whole; i += 4 * kTileLanes) {
    for (int k = 0; k < 4; ++k) {
      const Tile g = load_where<masked>(dy + i + k * kTileLanes, mask + i / kTileLanes + k);
      sum[k] += g;
      product[k] += g * (load(x + i + k * kTileLanes) - from);
    }
  }
  for (; i < whole; i += kTileLanes) {
    const Tile g = load_where<masked>(dy + i, mask + i / kTileLanes);
    sum[0] += g;
    product[0] += g * (load(x + i) - from);
  }
  for (int64_t l = 0; l < count - whole; ++l) {
    float g = dy[whole + l];
    if constexpr (masked) g = passes(mask, whole + l) ? g : 0;
    sum[1][l] += g;
    product[1][l] += g * (x[whole + l] - mean[l]);
  }
  const Tile all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  const Tile all_products = (product[0] + product[1]) + (product[2] + product[3]);
  for (int64_t l = 0; l < kTileLanes; ++l) {
    sums[l] += all[l];
    products[l] += all_products[l];
  }
}

template <bool masked, typename T>
FLEET_INLINE void combine_as(const T* dy, const uint16_t* mask, const T* x, const Factors& f,
                             int64_t count, T* dx) {
  const Tile mean = load(f.mean), a = load(f.a), b = load(f.b), c = load(f.c);
  const int64_t whole = whole_tiles(count);
  for (int64_t i = 0; i < whole; i += kTileLanes) {
    const Tile g = load_where<masked>(dy + i, mask + i / kTileLanes);
    store(dx + i, g * a + ((load(x + i) - mean) * b + c));
  }
  for (int64_t l = 0; l < count - whole; ++l) {
    float g = dy[whole + l];
    if constexpr (masked) g = passes(mask, whole + l) ? g : 0;
    dx[whole + l] = g * f.a[l] + ((x[whole + l] - f.mean[l]) * f.b[l] + f.c[l]);
  }
}

}  // namespace

template <typename T>
FLEET_SIMD void add_moments(const T* x, const float* shift, int64_t count, double* sums,
                            double* squares) {
  const Tile from = load(shift);
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t length = std::min(kBlock, count - begin), whole = whole_tiles(length);
    const T* at = x + begin;
    // Independent accumulators: an addition need not wait for the last.
    Tile sum[4] = {}, square[4] = {};
    int64_t i = 0;
    for (; i + 4 * kTileLanes <= whole; i += 4 * kTileLanes) {
      for (int k = 0; k < 4; ++k) {
        const Tile value = load(at + i + k * kTileLanes) - from;
        sum[k] += value;
        square[k] += value * value;
      }
    }
    for (; i < whole; i += kTileLanes) {
      const Tile value = load(at + i) - from;
      sum[0] += value;
      square[0] += value * value;
    }
    for (int64_t l = 0; l < length - whole; ++l) {
      const float value = at[whole + l] - shift[l];
      sum[1][l] += value;
      square[1][l] += value * value;
    }
    const Tile all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    const Tile all_squares = (square[0] + square[1]) + (square[2] + square[3]);
    for (int64_t l = 0; l < kTileLanes; ++l) {
      sums[l] += all[l];
      squares[l] += all_squares[l];
    }
  }
}

template <typename T>
FLEET_SIMD void apply(const T* x, const T* z, const Terms& terms, bool relu, int64_t count, T* y,
                      uint16_t* mask) {
  if (!relu) {
    z ? apply_as<true, false, false>(x, z, terms, count, y, mask)
      : apply_as<false, false, false>(x, z, terms, count, y, mask);
  } else if (z) {
    mask ? apply_as<true, true, true>(x, z, terms, count, y, mask)
         : apply_as<true, true, false>(x, z, terms, count, y, mask);
  } else {
    mask ? apply_as<false, true, true>(x, z, terms, count, y, mask)
         : apply_as<false, true, false>(x, z, terms, count, y, mask);
  }
}

template <typename T>
FLEET_SIMD void form(const T* a, const T* b, const uint16_t* mask, bool more, int64_t count, T* g) {
  if (more) {
    mask ? form_as<false, true, true>(a, b, mask, count, g)
         : form_as<false, false, true>(a, b, mask, count, g);
  } else if (b) {
    mask ? form_as<true, true, false>(a, b, mask, count, g)
         : form_as<true, false, false>(a, b, mask, count, g);
  } else {
    mask ? form_as<false, true, false>(a, b, mask, count, g)
         : form_as<false, false, false>(a, b, mask, count, g);
  }
}

template <typename T>
FLEET_SIMD void add_products(const T* dy, const uint16_t* mask, const T* x, const float* mean,
                             int64_t count, double* sums, double* products) {
  mask ? add_products_as<true>(dy, mask, x, mean, count, sums, products)
       : add_products_as<false>(dy, mask, x, mean, count, sums, products);
}

template <typename T>
FLEET_SIMD void combine(const T* dy, const uint16_t* mask, const T* x, const Factors& f,
                        int64_t count, T* dx) {
  mask ? combine_as<true>(dy, mask, x, f, count, dx) : combine_as<false>(dy, mask, x, f, count, dx);
}

template void add_moments(const float*, const float*, int64_t, double*, double*);
template void apply(const float*, const float*, const Terms&, bool, int64_t, float*, uint16_t*);
template void form(const float*, const float*, const uint16_t*, bool, int64_t, float*);
template void add_products(const float*, const uint16_t*, const float*, const float*, int64_t,
                           double*, double*);
template void combine(const float*, const uint16_t*, const float*, const Factors&, int64_t, float*);

template void add_moments(const BFloat16*, const float*, int64_t, double*, double*);
template void apply(const BFloat16*, const BFloat16*, const Terms&, bool, int64_t, BFloat16*,
                    uint16_t*);
template void form(const BFloat16*, const BFloat16*, const uint16_t*, bool, int64_t, BFloat16*);
template void add_products(const BFloat16*, const uint16_t*, const BFloat16*, const float*, int64_t,
                           double*, double*);
template void combine(const BFloat16*, const uint16_t*, const BFloat16*, const Factors&, int64_t,
                      BFloat16*);

}  // namespace fleet::cpu::norm_runs
