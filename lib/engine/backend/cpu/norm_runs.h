// Loops of batch normalization over one run of channels (backend/cpu/channel_runs.h). T: one of
// kLoopTypes. Thread-safe: all state is in the arguments.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "backend/cpu/channel_runs.h"

namespace fleet::cpu::norm_runs {

inline constexpr int64_t kBlock =
    64 * kTileLanes;  // elements between additions in double; they fit in the cache

// `mask` has one word per tile of each run: bit l for element l. Null: every element passes.

// sums[i] += x - shift, squares[i] += (x - shift)^2 over the elements of each position in the tile.
template <typename T>
void add_moments(const T* x, const float* shift, int64_t count, double* sums, double* squares);

// Constants of apply(), per group.
struct Terms {
  float mean[kTileLanes], factor[kTileLanes], bias[kTileLanes];
};

// y = max((x - mean) * factor + bias + z, 0). Without relu there is no max and no mask; a null z is
// omitted; mask (if present): y > 0 or NaN.
template <typename T>
void apply(const T* x, const T* z, const Terms& terms, bool relu, int64_t count, T* y,
           uint16_t* mask);

// g = a (+ b, unless null), each where the mask passes it (+ the old g, with `more`).
template <typename T>
void form(const T* a, const T* b, const uint16_t* mask, bool more, int64_t count, T* g);

// sums[i] += g, products[i] += g * (x - mean) over the elements of each position in the tile; g is
// dy where the mask passes it.
template <typename T>
void add_products(const T* dy, const uint16_t* mask, const T* x, const float* mean, int64_t count,
                  double* sums, double* products);

// Activations whose gradient computes their input, n = (x - mean) * factor + bias, again.
enum class Recomputed { kNone, kRelu6, kSilu, kHardSwish };
Recomputed recomputed_of(const std::string& activation);  // kNone: any other

// y = activation(n). At most kBlock elements.
template <typename T>
void activate(const T* x, const Terms& terms, Recomputed activation, int64_t count, T* y);

// g = activation'(n) * dy; g may be dy. At most kBlock elements.
template <typename T>
void activate_gradient(const T* x, const Terms& terms, Recomputed activation, const T* dy,
                       int64_t count, T* g);

// Constants of combine(), per group.
struct Factors {
  float mean[kTileLanes], a[kTileLanes], b[kTileLanes], c[kTileLanes];
};

// dx = g * a + (x - mean) * b + c; g is dy where the mask passes it.
template <typename T>
void combine(const T* dy, const uint16_t* mask, const T* x, const Factors& f, int64_t count, T* dx);

// The result for one run: two sums for each position in the tile.
struct Partial {
  double first[kTileLanes], second[kTileLanes];
};

// The gradient of the normalization: the sum of `dy` where the mask passes it, or through a
// recomputed activation.
template <typename T>
struct Gradient {
  std::vector<const T*> dy;
  const uint16_t* mask;
  T* formed;  // where it is stored; null: it is not, and there is one dy
  Recomputed activation = Recomputed::kNone;
  const Terms* terms = nullptr;  // per group, with an activation

  const T* values() const { return formed ? formed : dy[0]; }
  const uint16_t* mask_of_values() const { return formed ? nullptr : mask; }

  // The sums of a run, see add_products(). Block by block, so that stored values are read while
  // they are still in the cache.
  void add_up(const ChannelRuns& runs, int64_t group, int64_t image, const T* x, const float* mean,
              Partial& partial) const {
    partial = {};
    for (int64_t begin = 0; begin < runs.length; begin += kBlock) {
      const int64_t count = std::min(kBlock, runs.length - begin);
      const int64_t at = runs.offset(image, group) + begin;
      const uint16_t* bits = mask ? mask + runs.tile(image, group) + begin / kTileLanes : nullptr;
      T block[kBlock];
      const bool recomputes = activation != Recomputed::kNone;
      T* to = formed ? formed + at : (recomputes ? block : nullptr);
      const T* g = dy[0] + at;
      if (to && (!recomputes || dy.size() > 1)) {
        form_block(at, bits, count, to);
        g = to;
      }
      if (recomputes) {
        activate_gradient(x + at, terms[group], activation, g, count, to);
        g = to;
      }
      add_products(g, to ? nullptr : bits, x + at, mean, count, partial.first, partial.second);
    }
  }

 private:
  void form_block(int64_t at, const uint16_t* bits, int64_t count, T* to) const {
    form(dy[0] + at, dy.size() > 1 ? dy[1] + at : nullptr, bits, false, count, to);
    for (size_t k = 2; k < dy.size(); ++k) form<T>(dy[k] + at, nullptr, bits, true, count, to);
  }
};

}  // namespace fleet::cpu::norm_runs
