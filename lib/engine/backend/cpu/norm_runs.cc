#include "backend/cpu/norm_runs.h"

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

// The end of a run that fills no tile, then the same elements of `others`.
template <typename T>
FLEET_INLINE Tile load_end(const T* from, int64_t count, const Tile& others) {
  float values[kTileLanes];
  store(values, others);
  for (int64_t l = 0; l < count; ++l) values[l] = from[l];
  return load(values);
}

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

template <bool added, bool relu, bool masked, typename T>
FLEET_INLINE void apply_to(const T* x, const T* z, const Terms& terms, const RunPart& part, T* y,
                           uint16_t* mask) {
  for (int64_t run = 0; run < part.count; ++run) {
    const int64_t at = part.at(run);
    apply_as<added, relu, masked>(x + at, added ? z + at : nullptr, terms, part.length, y + at,
                                  masked ? mask + part.tile_at(run) : nullptr);
  }
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

template <bool two, bool masked, bool more, typename T>
FLEET_INLINE void form_in(const T* a, const T* b, const uint16_t* mask, const RunPart& part, T* g) {
  for (int64_t run = 0; run < part.count; ++run) {
    const int64_t at = part.at(run);
    form_as<two, masked, more>(a + at, two ? b + at : nullptr,
                               masked ? mask + part.tile_at(run) : nullptr, part.length, g + at);
  }
}

// Two sums of a block, in independent accumulators: an addition need not wait for the last one.
struct TileSums {
  Tile first[4], second[4];

  FLEET_INLINE void add_to(double* firsts, double* seconds) const {
    const Tile one = (first[0] + first[1]) + (first[2] + first[3]);
    const Tile two = (second[0] + second[1]) + (second[2] + second[3]);
    for (int64_t l = 0; l < kTileLanes; ++l) {
      firsts[l] += one[l];
      seconds[l] += two[l];
    }
  }
};

template <bool masked, typename T>
FLEET_INLINE void add_products_of(const T* dy, const uint16_t* mask, const T* x, const Tile& mean,
                                  int64_t count, TileSums& sums) {
  const int64_t whole = whole_tiles(count);
  int64_t i = 0;
  for (; i + 4 * kTileLanes <= whole; i += 4 * kTileLanes) {
    for (int k = 0; k < 4; ++k) {
      const Tile g = load_where<masked>(dy + i + k * kTileLanes, mask + i / kTileLanes + k);
      sums.first[k] += g;
      sums.second[k] += g * (load(x + i + k * kTileLanes) - mean);
    }
  }
  for (; i < whole; i += kTileLanes) {
    const Tile g = load_where<masked>(dy + i, mask + i / kTileLanes);
    sums.first[0] += g;
    sums.second[0] += g * (load(x + i) - mean);
  }
  if (i == count) return;
  Tile g = load_end(dy + i, count - i, Tile{});
  if constexpr (masked) g = where_bits(mask[i / kTileLanes], g);
  sums.first[1] += g;
  sums.second[1] += g * (load_end(x + i, count - i, mean) - mean);
}

template <bool masked, typename T>
FLEET_INLINE void add_products_as(const T* dy, const uint16_t* mask, const T* x, const float* mean,
                                  const RunPart& part, double* sums, double* products) {
  const Tile from = load(mean);
  TileSums block = {};
  for (int64_t run = 0; run < part.count; ++run) {
    const int64_t at = part.at(run);
    add_products_of<masked>(dy + at, masked ? mask + part.tile_at(run) : nullptr, x + at, from,
                            part.length, block);
  }
  block.add_to(sums, products);
}

template <typename T>
FLEET_INLINE void add_moments_of(const T* x, const Tile& shift, int64_t count, TileSums& sums) {
  const int64_t whole = whole_tiles(count);
  int64_t i = 0;
  for (; i + 4 * kTileLanes <= whole; i += 4 * kTileLanes) {
    for (int k = 0; k < 4; ++k) {
      const Tile value = load(x + i + k * kTileLanes) - shift;
      sums.first[k] += value;
      sums.second[k] += value * value;
    }
  }
  for (; i < whole; i += kTileLanes) {
    const Tile value = load(x + i) - shift;
    sums.first[0] += value;
    sums.second[0] += value * value;
  }
  if (i == count) return;
  const Tile value = load_end(x + i, count - i, shift) - shift;
  sums.first[1] += value;
  sums.second[1] += value * value;
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

template <bool masked, typename T>
FLEET_INLINE void combine_in(const T* dy, const uint16_t* mask, const T* x, const Factors& f,
                             const RunPart& part, T* dx) {
  for (int64_t run = 0; run < part.count; ++run) {
    const int64_t at = part.at(run);
    combine_as<masked>(dy + at, masked ? mask + part.tile_at(run) : nullptr, x + at, f, part.length,
                       dx + at);
  }
}

}  // namespace

template <typename T>
FLEET_SIMD void add_moments(const T* x, const float* shift, const RunPart& part, double* sums,
                            double* squares) {
  const Tile from = load(shift);
  for (int64_t begin = 0; begin < part.length; begin += kRunBlock) {
    const RunPart block = part.block(begin);
    TileSums of_block = {};
    for (int64_t run = 0; run < block.count; ++run) {
      add_moments_of(x + block.at(run), from, block.length, of_block);
    }
    of_block.add_to(sums, squares);
  }
}

template <typename T>
FLEET_SIMD void apply(const T* x, const T* z, const Terms& terms, bool relu, const RunPart& part,
                      T* y, uint16_t* mask) {
  if (!relu) {
    z ? apply_to<true, false, false>(x, z, terms, part, y, mask)
      : apply_to<false, false, false>(x, z, terms, part, y, mask);
  } else if (z) {
    mask ? apply_to<true, true, true>(x, z, terms, part, y, mask)
         : apply_to<true, true, false>(x, z, terms, part, y, mask);
  } else {
    mask ? apply_to<false, true, true>(x, z, terms, part, y, mask)
         : apply_to<false, true, false>(x, z, terms, part, y, mask);
  }
}

template <typename T>
FLEET_SIMD void form(const T* a, const T* b, const uint16_t* mask, bool more, const RunPart& part,
                     T* g) {
  if (more) {
    mask ? form_in<false, true, true>(a, b, mask, part, g)
         : form_in<false, false, true>(a, b, mask, part, g);
  } else if (b) {
    mask ? form_in<true, true, false>(a, b, mask, part, g)
         : form_in<true, false, false>(a, b, mask, part, g);
  } else {
    mask ? form_in<false, true, false>(a, b, mask, part, g)
         : form_in<false, false, false>(a, b, mask, part, g);
  }
}

template <typename T>
FLEET_SIMD void add_products(const T* dy, const uint16_t* mask, const T* x, const float* mean,
                             const RunPart& part, double* sums, double* products) {
  mask ? add_products_as<true>(dy, mask, x, mean, part, sums, products)
       : add_products_as<false>(dy, mask, x, mean, part, sums, products);
}

template <typename T>
FLEET_SIMD void combine(const T* dy, const uint16_t* mask, const T* x, const Factors& f,
                        const RunPart& part, T* dx) {
  mask ? combine_in<true>(dy, mask, x, f, part, dx) : combine_in<false>(dy, mask, x, f, part, dx);
}

template void add_moments(const float*, const float*, const RunPart&, double*, double*);
template void apply(const float*, const float*, const Terms&, bool, const RunPart&, float*,
                    uint16_t*);
template void form(const float*, const float*, const uint16_t*, bool, const RunPart&, float*);
template void add_products(const float*, const uint16_t*, const float*, const float*,
                           const RunPart&, double*, double*);
template void combine(const float*, const uint16_t*, const float*, const Factors&, const RunPart&,
                      float*);

template void add_moments(const BFloat16*, const float*, const RunPart&, double*, double*);
template void apply(const BFloat16*, const BFloat16*, const Terms&, bool, const RunPart&, BFloat16*,
                    uint16_t*);
template void form(const BFloat16*, const BFloat16*, const uint16_t*, bool, const RunPart&,
                   BFloat16*);
template void add_products(const BFloat16*, const uint16_t*, const BFloat16*, const float*,
                           const RunPart&, double*, double*);
template void combine(const BFloat16*, const uint16_t*, const BFloat16*, const Factors&,
                      const RunPart&, BFloat16*);

}  // namespace fleet::cpu::norm_runs
