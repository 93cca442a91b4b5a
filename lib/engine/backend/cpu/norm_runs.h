// Loops of batch normalization over one run of channels (backend/cpu/channel_runs.h). T: one of
// kLoopTypes. Thread-safe: all state is in the arguments.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "backend/cpu/channel_runs.h"

namespace fleet::cpu::norm_runs {

// Tensors are given by the first element of the run, constants and sums by its first position: one
// for each element of a row. `mask` has one word per tile of memory: bit l for element l. Null:
// every element passes.

// A block is a part of a run that fits in the cache: in the first one, with the values that a
// recomputed activation keeps.
inline constexpr int64_t kBlock = 64 * kTileLanes;  // elements, with one column
inline int64_t block_rows(const Span& span, bool recomputes) {
  if (span.columns == 1) return kBlock / kTileLanes;
  return std::max<int64_t>(2 * kBlock / (span.columns * kTileLanes), recomputes ? 1 : 16);
}
// Elements of the longest block with an activation: of whole rows and a tail.
inline constexpr int64_t kLongestBlock = 4 * kBlock;
static_assert(kMaxColumns * kTileLanes <= 2 * kBlock);

// sums += x - shift, squares += (x - shift)^2 over the rows.
template <typename T>
void add_moments(const Span& span, const T* x, const float* shift, double* sums, double* squares);

// Constants of apply().
struct Terms {
  const float *mean, *factor, *bias;
  Terms from(int64_t position) const {
    return {mean + position, factor + position, bias + position};
  }
};

// y = max((x - mean) * factor + bias + z, 0). Without relu there is no max and no mask; a null z is
// omitted; mask (if present): y > 0 or NaN.
template <typename T>
void apply(const Span& span, const T* x, const T* z, const Terms& terms, bool relu, T* y,
           uint16_t* mask);

// g = a (+ b, unless null), each where the mask passes it (+ the old g, with `more`). The rows of g
// are `stride` elements apart.
template <typename T>
void form(const Span& span, const T* a, const T* b, const uint16_t* mask, bool more, T* g,
          int64_t stride);

// sums += dy, products += dy * (x - mean) over the rows, where the mask passes dy. Its rows are
// `stride` elements apart.
template <typename T>
void add_products(const Span& span, const T* dy, int64_t stride, const uint16_t* mask, const T* x,
                  const float* mean, double* sums, double* products);

// Activations whose gradient computes their input, n = (x - mean) * factor + bias, again.
enum class Recomputed { kNone, kRelu6, kSilu, kHardSwish };
Recomputed recomputed_of(const std::string& activation);  // kNone: any other

// y = activation(n). At most block_rows() and a tail.
template <typename T>
void activate(const Span& span, const T* x, const Terms& terms, Recomputed activation, T* y);

// g = activation'(n) * dy; g may be dy. At most block_rows() and a tail. The rows of g and dy are
// these numbers of elements apart.
template <typename T>
void activate_gradient(const Span& span, const T* x, const Terms& terms, Recomputed activation,
                       const T* dy, int64_t dy_stride, T* g, int64_t g_stride);

// Constants of combine().
struct Factors {
  const float *mean, *a, *b, *c;
};

// dx = dy * a + (x - mean) * b + c, where the mask passes dy.
template <typename T>
void combine(const Span& span, const T* dy, const uint16_t* mask, const T* x, const Factors& f,
             T* dx);

// The gradient of the normalization: the sum of `dy` where the mask passes it, or through a
// recomputed activation.
template <typename T>
struct Gradient {
  std::vector<const T*> dy;
  const uint16_t* mask;
  T* formed;  // where it is stored; null: it is not, and there is one dy
  Recomputed activation = Recomputed::kNone;
  Terms terms = {};  // with an activation; from the first position

  const T* values() const { return formed ? formed : dy[0]; }
  const uint16_t* mask_of_values() const { return formed ? nullptr : mask; }

  // The sums of a run, see add_products(). mean: one per position. Block by block, so that stored
  // values are read while they are still in the cache.
  void add_up(const ChannelRuns& runs, int64_t part, int64_t group, const T* x, const float* mean,
              double* all_sums) const {
    const int64_t position = runs.position(group);
    double* sums = all_sums + runs.sums_of(part, 0) + position;
    double* products = all_sums + runs.sums_of(part, 1) + position;
    Span rest = runs.span(part, group);
    std::fill_n(sums, rest.columns * kTileLanes, 0.0);
    std::fill_n(products, rest.columns * kTileLanes, 0.0);
    const uint16_t* bits = mask ? mask + runs.tile(part, group) : nullptr;
    const bool recomputes = activation != Recomputed::kNone;
    for (int64_t at = runs.offset(part, group); !rest.is_empty();) {
      T block[kLongestBlock];
      T* to = formed ? formed + at : (recomputes ? block : nullptr);
      const Span span = rest.take(to ? block_rows(rest, recomputes) : rest.rows);
      const int64_t stride = formed ? span.stride : span.columns * kTileLanes;  // of `to`
      const T* g = dy[0] + at;
      if (to && (!recomputes || dy.size() > 1)) {
        form_block(span, at, bits, to, stride);
        g = to;
      }
      if (recomputes) {
        activate_gradient(span, x + at, terms.from(position), activation, g,
                          g == to ? stride : span.stride, to, stride);
      }
      add_products(span, to ? to : g, to ? stride : span.stride, to ? nullptr : bits, x + at,
                   mean + position, sums, products);
      at += span.rows * span.stride;
      if (bits) bits += span.rows * span.words();
    }
  }

 private:
  void form_block(const Span& span, int64_t at, const uint16_t* bits, T* to, int64_t stride) const {
    form(span, dy[0] + at, dy.size() > 1 ? dy[1] + at : nullptr, bits, false, to, stride);
    for (size_t k = 2; k < dy.size(); ++k) {
      form<T>(span, dy[k] + at, nullptr, bits, true, to, stride);
    }
  }
};

}  // namespace fleet::cpu::norm_runs
