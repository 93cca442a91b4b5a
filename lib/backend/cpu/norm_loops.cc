#include "backend/cpu/norm_loops.h"

#include <cmath>

#include "backend/cpu/tiles.h"

namespace fleet::cpu {
namespace {

// A group of channels is done after the other, so that what the first sweep over its memory brings
// into the cache serves the second.

constexpr int64_t kBlock = 64 * kTile;  // elements between additions in double; stays in the cache

// A mask has a word a tile of each run: bit l for element l.
template <bool masked, typename T>
FLEET_INLINE Tile load_where(const T* from, const uint16_t* mask) {
  if constexpr (masked) return where_bits(*mask, load(from));
  return load(from);
}

FLEET_INLINE bool passes(const uint16_t* mask, int64_t i) {
  return mask[i / kTile] >> (i % kTile) & 1;
}

constexpr int64_t whole_tiles(int64_t count) { return count - count % kTile; }

// sums[i] += x - shift, squares[i] += (x - shift)^2 over the elements of each place of the tile.
template <typename T>
FLEET_SIMD void add_moments(const T* x, const float* shift, int64_t count, double* sums,
                            double* squares) {
  const Tile from = load(shift);
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t length = std::min(kBlock, count - begin), whole = whole_tiles(length);
    const T* at = x + begin;
    Tile sum[4] = {}, square[4] = {};  // side by side: an addition need not wait for the last
    int64_t i = 0;
    for (; i + 4 * kTile <= whole; i += 4 * kTile) {
      for (int k = 0; k < 4; ++k) {
        const Tile value = load(at + i + k * kTile) - from;
        sum[k] += value;
        square[k] += value * value;
      }
    }
    for (; i < whole; i += kTile) {
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
    for (int64_t l = 0; l < kTile; ++l) {
      sums[l] += all[l];
      squares[l] += all_squares[l];
    }
  }
}

// For apply(), of each group.
struct Terms {
  float mean[kTile], factor[kTile], bias[kTile];
};

template <bool masked, typename T>
FLEET_INLINE void apply_as(const T* x, const T* z, const Terms& t, int64_t count, T* y,
                           uint16_t* mask) {
  const Tile mean = load(t.mean), factor = load(t.factor), bias = load(t.bias), zero = {};
  const int64_t whole = whole_tiles(count);
  for (int64_t i = 0; i < whole; i += kTile) {
    const Tile value = (load(x + i) - mean) * factor + bias + load(z + i);
    const TileFlags flags = value > zero;
    if constexpr (masked) mask[i / kTile] = bits_of(flags);
    store(y + i, value > zero ? value : zero);
  }
  uint16_t bits = 0;
  for (int64_t l = 0; l < count - whole; ++l) {
    const float value = (x[whole + l] - t.mean[l]) * t.factor[l] + t.bias[l] + z[whole + l];
    bits |= static_cast<uint16_t>((value > 0) << l);
    y[whole + l] = value > 0 ? value : 0.0f;
  }
  if (masked && whole < count) mask[whole / kTile] = bits;
}

// y = max((x - mean) * factor + bias + z, 0); mask (where there is one): y > 0.
template <typename T>
FLEET_SIMD void apply(const T* x, const T* z, const Terms& terms, int64_t count, T* y,
                      uint16_t* mask) {
  mask ? apply_as<true>(x, z, terms, count, y, mask) : apply_as<false>(x, z, terms, count, y, mask);
}

// g = a where the mask passes it (+ b alike) (+ what g was, with `more`).
template <bool two, bool masked, bool more, typename T>
FLEET_INLINE void form_as(const T* a, const T* b, const uint16_t* mask, int64_t count, T* g) {
  const int64_t whole = whole_tiles(count);
  for (int64_t i = 0; i < whole; i += kTile) {
    Tile value = load_where<masked>(a + i, mask + i / kTile);
    if constexpr (two) value += load_where<masked>(b + i, mask + i / kTile);
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

template <bool masked, typename T>
FLEET_INLINE void add_products_as(const T* dy, const uint16_t* mask, const T* x, const float* mean,
                                  int64_t count, double* sums, double* products) {
  const Tile from = load(mean);
  const int64_t whole = whole_tiles(count);
  Tile sum[4] = {}, product[4] = {};
  int64_t i = 0;
  for (; i + 4 * kTile <= whole; i += 4 * kTile) {
    for (int k = 0; k < 4; ++k) {
      const Tile g = load_where<masked>(dy + i + k * kTile, mask + i / kTile + k);
      sum[k] += g;
      product[k] += g * (load(x + i + k * kTile) - from);
    }
  }
  for (; i < whole; i += kTile) {
    const Tile g = load_where<masked>(dy + i, mask + i / kTile);
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
  for (int64_t l = 0; l < kTile; ++l) {
    sums[l] += all[l];
    products[l] += all_products[l];
  }
}

// sums[i] += g, products[i] += g * (x - mean) over the elements of each place of the tile; g is dy
// where the mask passes it.
template <typename T>
FLEET_SIMD void add_products(const T* dy, const uint16_t* mask, const T* x, const float* mean,
                             int64_t count, double* sums, double* products) {
  mask ? add_products_as<true>(dy, mask, x, mean, count, sums, products)
       : add_products_as<false>(dy, mask, x, mean, count, sums, products);
}

// For combine(), of each group.
struct Factors {
  float mean[kTile], a[kTile], b[kTile], c[kTile];
};

template <bool masked, typename T>
FLEET_INLINE void combine_as(const T* dy, const uint16_t* mask, const T* x, const Factors& f,
                             int64_t count, T* dx) {
  const Tile mean = load(f.mean), a = load(f.a), b = load(f.b), c = load(f.c);
  const int64_t whole = whole_tiles(count);
  for (int64_t i = 0; i < whole; i += kTile) {
    const Tile g = load_where<masked>(dy + i, mask + i / kTile);
    store(dx + i, g * a + ((load(x + i) - mean) * b + c));
  }
  for (int64_t l = 0; l < count - whole; ++l) {
    float g = dy[whole + l];
    if constexpr (masked) g = passes(mask, whole + l) ? g : 0;
    dx[whole + l] = g * f.a[l] + ((x[whole + l] - f.mean[l]) * f.b[l] + f.c[l]);
  }
}

// dx = g * a + (x - mean) * b + c; g is dy where the mask passes it.
template <typename T>
FLEET_SIMD void combine(const T* dy, const uint16_t* mask, const T* x, const Factors& f,
                        int64_t count, T* dx) {
  mask ? combine_as<true>(dy, mask, x, f, count, dx) : combine_as<false>(dy, mask, x, f, count, dx);
}

// Of one run: two sums for each place of the tile.
struct Partial {
  double first[kTile], second[kTile];
};

// Mean and biased variance, from those of parts (Chan et al. 1979).
struct Moments {
  double count = 0, mean = 0, squares = 0;
  void add(double more, double its_mean, double its_squares) {
    const double all = count + more, delta = its_mean - mean;
    squares += its_squares + delta * delta * count * more / all;
    mean += delta * more / all;
    count = all;
  }
};

template <typename T>
class Forward {
 public:
  explicit Forward(const NormForwardArguments& arguments)
      : arg_(arguments),
        runs_(arguments.x.shape, arguments.x.layout),
        x_(arguments.x.as<T>()),
        z_(static_cast<const T*>(arguments.z)),
        y_(static_cast<T*>(arguments.y)),
        partials_(static_cast<Partial*>(arguments.workspace)),
        terms_(runs_.groups),
        batch_(runs_.channels) {}

  void run() {
    for_each_group(
        runs_, sizeof(T),
        [&](int64_t group, int64_t image) {
          if (!arg_.is_test) measure(group, image);
        },
        [&](int64_t group) { settle(group); },
        [&](int64_t group, int64_t image) {
          const int64_t at = runs_.offset(image, group);
          apply(x_ + at, z_ + at, terms_[group], runs_.length, y_ + at,
                arg_.mask ? arg_.mask + runs_.tile(image, group) : nullptr);
        });
  }

 private:
  Partial& partial(int64_t group, int64_t image) { return partials_[group * runs_.images + image]; }

  // Sums are taken of differences to a value of the channel, so that a large mean costs no digits.
  void measure(int64_t group, int64_t image) {
    const T* x = x_ + runs_.offset(image, group);
    float shift[kTile];
    for (int64_t l = 0; l < kTile; ++l) shift[l] = x[l & (runs_.lanes - 1)];
    Partial& partial = this->partial(group, image);
    partial = {};
    add_moments(x, shift, runs_.length, partial.first, partial.second);
  }

  void settle(int64_t group) {
    for (int64_t lane = 0; lane < runs_.lanes; ++lane) {
      const int64_t channel = group * runs_.lanes + lane;
      if (channel >= runs_.channels) break;
      arg_.is_test ? keep(channel) : update(group, lane, channel);
    }
    Terms& terms = terms_[group];
    runs_.fill(terms.mean, group, [&](int64_t c) { return used_mean(c); });
    runs_.fill(terms.factor, group, [&](int64_t c) {
      return arg_.scale[c] / std::sqrt(used_variance(c) + arg_.epsilon);
    });
    runs_.fill(terms.bias, group, [&](int64_t c) { return arg_.bias[c]; });
  }

  double used_mean(int64_t c) const { return arg_.is_test ? arg_.mean[c] : batch_[c].mean; }
  double used_variance(int64_t c) const {
    return arg_.is_test ? arg_.variance[c] : batch_[c].squares / batch_[c].count;
  }

  void update(int64_t group, int64_t lane, int64_t channel) {
    Moments moments;
    const double each = static_cast<double>(runs_.length / runs_.lanes);
    for (int64_t image = 0; image < runs_.images; ++image) {
      const Partial& partial = this->partial(group, image);
      const double sum = runs_.fold(partial.first, lane);
      const double shift = x_[runs_.offset(image, group) + lane];
      moments.add(each, shift + sum / each, runs_.fold(partial.second, lane) - sum * sum / each);
    }
    moments.squares = std::max(moments.squares, 0.0);
    batch_[channel] = moments;
    const double keep = 1 - arg_.momentum, add = arg_.momentum;
    const auto set = [&](float* to, double value) {
      if (to) to[channel] = static_cast<float>(value);
    };
    set(arg_.mean_out, keep * arg_.mean[channel] + add * moments.mean);
    set(arg_.variance_out,
        keep * arg_.variance[channel] + add * moments.squares / (moments.count - 1));
    set(arg_.saved_mean, moments.mean);
    set(arg_.saved_variance, moments.squares / moments.count);
  }

  void keep(int64_t channel) {
    for (float* to : {arg_.mean_out, arg_.saved_mean}) {
      if (to) to[channel] = arg_.mean[channel];
    }
    for (float* to : {arg_.variance_out, arg_.saved_variance}) {
      if (to) to[channel] = arg_.variance[channel];
    }
  }

  const NormForwardArguments arg_;
  const ChannelRuns runs_;
  const T *x_, *z_;
  T* y_;
  Partial* partials_;
  std::vector<Terms> terms_;    // of each group
  std::vector<Moments> batch_;  // of each channel
};

template <typename T>
class Backward {
 public:
  explicit Backward(const NormBackwardArguments& arguments)
      : arg_(arguments),
        runs_(arguments.x.shape, arguments.x.layout),
        x_(arguments.x.as<T>()),
        dx_(static_cast<T*>(arguments.dx)),
        partials_(static_cast<Partial*>(arguments.workspace)),
        factors_(runs_.groups) {
    for (const void* dy : arguments.dy) dy_.push_back(static_cast<const T*>(dy));
    // Behind the activation the gradient is kept where somebody wants it, or where it is a sum.
    if (arg_.dz) {
      formed_ = static_cast<T*>(arg_.dz);
    } else if (dy_.size() > 1) {
      formed_ = dx_;
      FLEET_CHECK(formed_, "a sum of gradients that nobody wants");
    }
    read_ = formed_ ? formed_ : dy_[0];
    read_mask_ = formed_ ? nullptr : arg_.mask;
  }

  void run() {
    for (int64_t group = 0; group < runs_.groups; ++group) {
      runs_.fill(factors_[group].mean, group, [&](int64_t c) { return arg_.mean[c]; });
    }
    for_each_group(
        runs_, sizeof(T), [&](int64_t group, int64_t image) { gather(group, image); },
        [&](int64_t group) { settle(group); },
        [&](int64_t group, int64_t image) {
          if (!dx_) return;
          const int64_t at = runs_.offset(image, group);
          combine(read_ + at, read_mask_ ? read_mask_ + runs_.tile(image, group) : nullptr, x_ + at,
                  factors_[group], runs_.length, dx_ + at);
        });
  }

 private:
  void gather(int64_t group, int64_t image) {
    const float* mean = factors_[group].mean;
    Partial& partial = partials_[group * runs_.images + image];
    partial = {};
    for (int64_t begin = 0; begin < runs_.length; begin += kBlock) {
      const int64_t count = std::min(kBlock, runs_.length - begin);
      const int64_t at = runs_.offset(image, group) + begin;
      const int64_t tile = runs_.tile(image, group) + begin / kTile;
      if (formed_) form_at(at, tile, count);
      add_products(read_ + at, read_mask_ ? read_mask_ + tile : nullptr, x_ + at, mean, count,
                   partial.first, partial.second);
    }
  }

  void form_at(int64_t at, int64_t tile, int64_t count) {
    const uint16_t* mask = arg_.mask ? arg_.mask + tile : nullptr;
    const T* second = dy_.size() > 1 ? dy_[1] + at : nullptr;
    form(dy_[0] + at, second, mask, false, count, formed_ + at);
    for (size_t k = 2; k < dy_.size(); ++k) {
      form<T>(dy_[k] + at, nullptr, mask, true, count, formed_ + at);
    }
  }

  void settle(int64_t group) {
    double sums[kTile] = {}, products[kTile] = {};  // by lane
    for (int64_t image = 0; image < runs_.images; ++image) {
      const Partial& partial = partials_[group * runs_.images + image];
      for (int64_t lane = 0; lane < runs_.lanes; ++lane) {
        sums[lane] += runs_.fold(partial.first, lane);
        products[lane] += runs_.fold(partial.second, lane);
      }
    }
    const auto inverse = [&](int64_t c) { return 1 / std::sqrt(arg_.variance[c] + arg_.epsilon); };
    for (int64_t lane = 0; lane < runs_.lanes; ++lane) {
      const int64_t channel = group * runs_.lanes + lane;
      if (channel >= runs_.channels) break;
      if (arg_.dscale) arg_.dscale[channel] = static_cast<float>(products[lane] * inverse(channel));
      if (arg_.dbias) arg_.dbias[channel] = static_cast<float>(sums[lane]);
    }
    // Given statistics do not depend on x.
    const double share = arg_.is_test ? 0 : 1 / static_cast<double>(runs_.values);
    Factors& factors = factors_[group];
    const auto factor = [&](int64_t c) { return arg_.scale[c] * inverse(c); };
    const auto lane_of = [&](int64_t c) { return c - group * runs_.lanes; };
    runs_.fill(factors.a, group, factor);
    runs_.fill(factors.b, group, [&](int64_t c) {
      return -factor(c) * inverse(c) * inverse(c) * products[lane_of(c)] * share;
    });
    runs_.fill(factors.c, group, [&](int64_t c) { return -factor(c) * sums[lane_of(c)] * share; });
  }

  const NormBackwardArguments arg_;
  const ChannelRuns runs_;
  const T* x_;
  std::vector<const T*> dy_;
  T* dx_;
  Partial* partials_;
  std::vector<Factors> factors_;
  T* formed_ = nullptr;  // where the gradient behind the activation is kept, if it is
  const T* read_;        // the gradient as the sums and dx read it
  const uint16_t* read_mask_;
};

template <template <typename> typename Body, typename Arguments>
std::unique_ptr<Kernel> kernel_of(const Arguments& arguments) {
  return with_loop_type(arguments.x.dtype, [&]<typename T>(T) {
    auto body = std::make_shared<Body<T>>(arguments);
    return make_kernel([body](Stream&) { body->run(); });
  });
}

}  // namespace

size_t norm_workspace(const Shape& x, const Layout& layout) {
  const ChannelRuns runs(x, layout);
  return static_cast<size_t>(runs.images * runs.groups) * sizeof(Partial);
}

Layout norm_mask(const Shape& x, const Layout& layout) {
  const ChannelRuns runs(x, layout);
  const int64_t words = runs.images * runs.groups * runs.tiles;
  return Layout::opaque(words * static_cast<int64_t>(sizeof(uint16_t)), "norm_loops_mask");
}

std::unique_ptr<Kernel> norm_forward_kernel(const NormForwardArguments& arguments) {
  return kernel_of<Forward>(arguments);
}

std::unique_ptr<Kernel> norm_backward_kernel(const NormBackwardArguments& arguments) {
  return kernel_of<Backward>(arguments);
}

}  // namespace fleet::cpu
