// Loops of batch normalization over a part of the runs of channels (backend/cpu/channel_runs.h). T:
// one of kLoopTypes. Pointers to elements and masks are those of whole tensors, which the part
// indexes. Thread-safe: all state is in the arguments.
#pragma once

#include <vector>

#include "backend/cpu/channel_runs.h"

namespace fleet::cpu::norm_runs {

// `mask` has one word per tile of each run: bit l for element l. Null: every element passes.

// sums[i] += x - shift, squares[i] += (x - shift)^2 over the elements of each position in the tile.
template <typename T>
void add_moments(const T* x, const float* shift, const RunPart& part, double* sums,
                 double* squares);

// Constants of apply(), per group.
struct Terms {
  float mean[kTileLanes], factor[kTileLanes], bias[kTileLanes];
};

// y = max((x - mean) * factor + bias + z, 0). Without relu there is no max and no mask; a null z is
// omitted; mask (if present): y > 0 or NaN.
template <typename T>
void apply(const T* x, const T* z, const Terms& terms, bool relu, const RunPart& part, T* y,
           uint16_t* mask);

// g = a (+ b, unless null), each where the mask passes it (+ the old g, with `more`).
template <typename T>
void form(const T* a, const T* b, const uint16_t* mask, bool more, const RunPart& part, T* g);

// sums[i] += g, products[i] += g * (x - mean) over the elements of each position in the tile; g is
// dy where the mask passes it. The part: not larger than a block.
template <typename T>
void add_products(const T* dy, const uint16_t* mask, const T* x, const float* mean,
                  const RunPart& part, double* sums, double* products);

// Constants of combine(), per group.
struct Factors {
  float mean[kTileLanes], a[kTileLanes], b[kTileLanes], c[kTileLanes];
};

// dx = g * a + (x - mean) * b + c; g is dy where the mask passes it.
template <typename T>
void combine(const T* dy, const uint16_t* mask, const T* x, const Factors& f, const RunPart& part,
             T* dx);

// The result for one part: two sums for each position in the tile.
struct Partial {
  double first[kTileLanes], second[kTileLanes];
};

// The sums of a group over all parts. partials: those of all groups, one group after another.
inline Partial total(const ChannelRuns& runs, const Partial* partials, int64_t group) {
  Partial all = {};
  for (int64_t part = 0; part < runs.parts; ++part) {
    const Partial& one = partials[group * runs.parts + part];
    for (int64_t i = 0; i < kTileLanes; ++i) all.first[i] += one.first[i];
    for (int64_t i = 0; i < kTileLanes; ++i) all.second[i] += one.second[i];
  }
  return all;
}

// The gradient of the normalization: the sum of `dy` where the mask passes it.
template <typename T>
struct Gradient {
  std::vector<const T*> dy;
  const uint16_t* mask;
  T* formed;  // where it is stored; null: it is not, and there is one dy

  const T* values() const { return formed ? formed : dy[0]; }
  const uint16_t* mask_of_values() const { return formed ? nullptr : mask; }

  // The sums of a part, see add_products(). Block by block, so that stored values are read while
  // they are still in the cache.
  void add_up(const RunPart& part, const T* x, const float* mean, Partial& partial) const {
    partial = {};
    for (int64_t begin = 0; begin < part.length; begin += kRunBlock) {
      const RunPart block = part.block(begin);
      if (formed) form_block(block);
      add_products(values(), mask_of_values(), x, mean, block, partial.first, partial.second);
    }
  }

 private:
  void form_block(const RunPart& block) const {
    form(dy[0], dy.size() > 1 ? dy[1] : nullptr, mask, false, block, formed);
    for (size_t k = 2; k < dy.size(); ++k) form<T>(dy[k], nullptr, mask, true, block, formed);
  }
};

}  // namespace fleet::cpu::norm_runs
