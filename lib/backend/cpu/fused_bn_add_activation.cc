// Own loops: oneDNN 2.6 has no batch norm that adds. A group of channels after the other, so that
// what the first sweep over its memory brings into the cache serves the second.
#include <cmath>
#include <vector>

#include "backend/cpu/channel_runs.h"
#include "backend/cpu/elementwise.h"

namespace fleet {
namespace {

using cpu::ChannelRuns;
using cpu::for_each_group;
using cpu::kTile;

constexpr int64_t kBlock = 64 * kTile;  // elements between additions in double; stays in the cache

// sums[i] += x - shift, squares[i] += (x - shift)^2 over the elements of each place of the tile.
FLEET_SIMD void add_moments(const float* x, const float* shift, int64_t count, double* sums,
                            double* squares) {
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, count), whole = end - (end - begin) % kTile;
    float sum[kTile] = {}, square[kTile] = {};
    for (int64_t i = begin; i < whole; i += kTile) {
#pragma omp simd
      for (int64_t l = 0; l < kTile; ++l) {
        const float value = x[i + l] - shift[l];
        sum[l] += value;
        square[l] += value * value;
      }
    }
    for (int64_t l = 0; l < end - whole; ++l) {
      const float value = x[whole + l] - shift[l];
      sum[l] += value;
      square[l] += value * value;
    }
    for (int64_t l = 0; l < kTile; ++l) {
      sums[l] += sum[l];
      squares[l] += square[l];
    }
  }
}

// y = max(x * factor + term + z, 0); mask (where there is one) = y > 0.
FLEET_SIMD void apply(const float* x, const float* z, const float* factor, const float* term,
                      int64_t count, float* y, uint8_t* mask) {
  const int64_t whole = count - count % kTile;
  if (mask) {
    for (int64_t i = 0; i < whole; i += kTile) {
#pragma omp simd
      for (int64_t l = 0; l < kTile; ++l) {
        const float value = x[i + l] * factor[l] + term[l] + z[i + l];
        y[i + l] = value > 0 ? value : 0;
        mask[i + l] = value > 0;
      }
    }
  } else {
    for (int64_t i = 0; i < whole; i += kTile) {
#pragma omp simd
      for (int64_t l = 0; l < kTile; ++l) {
        const float value = x[i + l] * factor[l] + term[l] + z[i + l];
        y[i + l] = value > 0 ? value : 0;
      }
    }
  }
  for (int64_t l = 0; l < count - whole; ++l) {
    const float value = x[whole + l] * factor[l] + term[l] + z[whole + l];
    y[whole + l] = value > 0 ? value : 0;
    if (mask) mask[whole + l] = value > 0;
  }
}

FLEET_SIMD void mask_one(const float* a, const uint8_t* mask, int64_t count, float* g) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) g[i] = mask[i] ? a[i] : 0;
}

FLEET_SIMD void mask_two(const float* a, const float* b, const uint8_t* mask, int64_t count,
                         float* g) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) g[i] = mask[i] ? a[i] + b[i] : 0;
}

FLEET_SIMD void mask_more(const float* a, const uint8_t* mask, int64_t count, float* g) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) g[i] += mask[i] ? a[i] : 0;
}

// sums[i] += g, products[i] += g * (x - mean) over the elements of each place of the tile.
FLEET_SIMD void add_products(const float* g, const float* x, const float* mean, int64_t count,
                             double* sums, double* products) {
  const int64_t whole = count - count % kTile;
  float sum[kTile] = {}, product[kTile] = {};
  for (int64_t i = 0; i < whole; i += kTile) {
#pragma omp simd
    for (int64_t l = 0; l < kTile; ++l) {
      sum[l] += g[i + l];
      product[l] += g[i + l] * (x[i + l] - mean[l]);
    }
  }
  for (int64_t l = 0; l < count - whole; ++l) {
    sum[l] += g[whole + l];
    product[l] += g[whole + l] * (x[whole + l] - mean[l]);
  }
  for (int64_t l = 0; l < kTile; ++l) {
    sums[l] += sum[l];
    products[l] += product[l];
  }
}

// dx = g * a + (x - mean) * b + c
FLEET_SIMD void combine(const float* g, const float* x, const float* mean, const float* a,
                        const float* b, const float* c, int64_t count, float* dx) {
  const int64_t whole = count - count % kTile;
  for (int64_t i = 0; i < whole; i += kTile) {
#pragma omp simd
    for (int64_t l = 0; l < kTile; ++l) {
      dx[i + l] = g[i + l] * a[l] + (x[i + l] - mean[l]) * b[l] + c[l];
    }
  }
  for (int64_t l = 0; l < count - whole; ++l) {
    dx[whole + l] = g[whole + l] * a[l] + (x[whole + l] - mean[l]) * b[l] + c[l];
  }
}

// Of one run: two sums for each place of the tile.
struct Partial {
  double first[kTile], second[kTile];
};

size_t partial_bytes(const Shape& x) {
  return static_cast<size_t>(x[0] * x[1]) * sizeof(Partial);  // as many runs as there can be
}

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

class Forward {
 public:
  explicit Forward(KernelContext& context)
      : runs_(context.inputs[0].shape, context.inputs[0].layout),
        partials_(static_cast<Partial*>(context.workspace)),
        is_test_(context.attributes().boolean("is_test")),
        epsilon_(context.attributes().number("epsilon")),
        momentum_(context.attributes().number("momentum")),
        x_(context.inputs[0].as<float>()),
        scale_(context.inputs[1].as<float>()),
        bias_(context.inputs[2].as<float>()),
        mean_(context.inputs[3].as<float>()),
        variance_(context.inputs[4].as<float>()),
        z_(context.inputs[5].as<float>()),
        y_(context.outputs[0].as<float>()),
        mask_(context.outputs[5].as<uint8_t>()) {
    for (int i = 0; i < 4; ++i) statistics_[i] = context.outputs[1 + i].as<float>();
    constants_.resize(runs_.groups * 2 * kTile);
  }

  void run() {
    for_each_group(
        runs_, omp_get_max_threads(),
        [&](int64_t group, int64_t image) {
          if (!is_test_) measure(group, image);
        },
        [&](int64_t group) { settle(group); },
        [&](int64_t group, int64_t image) {
          const int64_t at = runs_.offset(image, group);
          const float* constants = &constants_[group * 2 * kTile];
          apply(x_ + at, z_ + at, constants, constants + kTile, runs_.length, y_ + at,
                mask_ ? mask_ + at : nullptr);
        });
  }

 private:
  Partial& partial(int64_t group, int64_t image) { return partials_[group * runs_.images + image]; }

  // Sums are taken of differences to a value of the channel, so that a large mean costs no digits.
  void measure(int64_t group, int64_t image) {
    const float* x = x_ + runs_.offset(image, group);
    float shift[kTile];
    for (int64_t l = 0; l < kTile; ++l) shift[l] = x[l % runs_.lanes];
    Partial& partial = this->partial(group, image);
    partial = {};
    add_moments(x, shift, runs_.length, partial.first, partial.second);
  }

  void settle(int64_t group) {
    for (int64_t lane = 0; lane < runs_.lanes; ++lane) {
      const int64_t channel = group * runs_.lanes + lane;
      if (channel >= runs_.channels) break;
      is_test_ ? keep(channel) : update(group, lane, channel);
    }
    float* constants = &constants_[group * 2 * kTile];
    const auto inverse = [&](int64_t c) { return 1 / std::sqrt(used_variance(c) + epsilon_); };
    runs_.fill(constants, group, [&](int64_t c) { return scale_[c] * inverse(c); });
    runs_.fill(constants + kTile, group,
               [&](int64_t c) { return bias_[c] - used_mean(c) * scale_[c] * inverse(c); });
  }

  double used_mean(int64_t c) const { return is_test_ ? mean_[c] : batch_[c].mean; }
  double used_variance(int64_t c) const {
    return is_test_ ? variance_[c] : batch_[c].squares / batch_[c].count;
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
    batch_[channel] = moments;
    const double variance = std::max(moments.squares, 0.0) / moments.count;
    const double unbiased = std::max(moments.squares, 0.0) / (moments.count - 1);
    const double old_mean = mean_[channel], old_variance = variance_[channel];
    const auto set = [&](int which, double value) {
      if (statistics_[which]) statistics_[which][channel] = static_cast<float>(value);
    };
    set(0, (1 - momentum_) * old_mean + momentum_ * moments.mean);
    set(1, (1 - momentum_) * old_variance + momentum_ * unbiased);
    set(2, moments.mean);
    set(3, variance);
  }

  void keep(int64_t channel) {
    for (int which = 0; which < 4; ++which) {
      if (statistics_[which]) {
        statistics_[which][channel] = which % 2 ? variance_[channel] : mean_[channel];
      }
    }
  }

  ChannelRuns runs_;
  Partial* partials_;
  bool is_test_;
  double epsilon_, momentum_;
  const float *x_, *scale_, *bias_, *mean_, *variance_, *z_;
  float* y_;
  uint8_t* mask_;
  float* statistics_[4];          // mean_out, variance_out, saved_mean, saved_variance
  std::vector<float> constants_;  // of each group: factor and term
  std::vector<Moments> batch_ = std::vector<Moments>(runs_.channels);
};

class Backward {
 public:
  explicit Backward(KernelContext& context)
      : runs_(context.inputs[0].shape, context.inputs[0].layout),
        partials_(static_cast<Partial*>(context.workspace)),
        is_test_(context.attributes().boolean("is_test")),
        epsilon_(context.attributes().number("epsilon")),
        x_(context.inputs[0].as<float>()),
        scale_(context.inputs[1].as<float>()),
        mean_(context.inputs[2].as<float>()),
        variance_(context.inputs[3].as<float>()),
        mask_(context.inputs[4].as<uint8_t>()),
        dx_(context.outputs[0].as<float>()),
        g_(context.outputs[1].as<float>()),
        dscale_(context.outputs[2].as<float>()),
        dbias_(context.outputs[3].as<float>()) {
    for (size_t i = 5; i < context.inputs.size(); ++i) {
      dy_.push_back(context.inputs[i].as<float>());
    }
    if (!g_) g_ = dx_;  // z needs no gradient: it is formed where dx will be
    if (!g_) g_ = reinterpret_cast<float*>(partials_ + runs_.images * runs_.channels);
    constants_.resize(runs_.groups * 4 * kTile);
  }

  void run() {
    for_each_group(
        runs_, omp_get_max_threads(), [&](int64_t group, int64_t image) { gather(group, image); },
        [&](int64_t group) { settle(group); },
        [&](int64_t group, int64_t image) {
          if (!dx_) return;
          const int64_t at = runs_.offset(image, group);
          const float* constants = &constants_[group * 4 * kTile];
          combine(g_ + at, x_ + at, constants, constants + kTile, constants + 2 * kTile,
                  constants + 3 * kTile, runs_.length, dx_ + at);
        });
  }

 private:
  // The gradient behind the activation, and its sums.
  void gather(int64_t group, int64_t image) {
    float mean[kTile];
    runs_.fill(mean, group, [&](int64_t c) { return mean_[c]; });
    Partial& partial = partials_[group * runs_.images + image];
    partial = {};
    for (int64_t begin = 0; begin < runs_.length; begin += kBlock) {
      const int64_t count = std::min(kBlock, runs_.length - begin);
      const int64_t at = runs_.offset(image, group) + begin;
      if (dy_.size() == 1) {
        mask_one(dy_[0] + at, mask_ + at, count, g_ + at);
      } else {
        mask_two(dy_[0] + at, dy_[1] + at, mask_ + at, count, g_ + at);
        for (size_t k = 2; k < dy_.size(); ++k) mask_more(dy_[k] + at, mask_ + at, count, g_ + at);
      }
      add_products(g_ + at, x_ + at, mean, count, partial.first, partial.second);
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
    const auto inverse = [&](int64_t c) { return 1 / std::sqrt(variance_[c] + epsilon_); };
    for (int64_t lane = 0; lane < runs_.lanes; ++lane) {
      const int64_t channel = group * runs_.lanes + lane;
      if (channel >= runs_.channels) break;
      if (dscale_) dscale_[channel] = static_cast<float>(products[lane] * inverse(channel));
      if (dbias_) dbias_[channel] = static_cast<float>(sums[lane]);
    }
    const double share = is_test_ ? 0 : 1 / static_cast<double>(runs_.values);
    float* constants = &constants_[group * 4 * kTile];
    const auto lane_of = [&](int64_t c) { return c - group * runs_.lanes; };
    runs_.fill(constants, group, [&](int64_t c) { return mean_[c]; });
    runs_.fill(constants + kTile, group, [&](int64_t c) { return scale_[c] * inverse(c); });
    runs_.fill(constants + 2 * kTile, group, [&](int64_t c) {
      return -scale_[c] * std::pow(inverse(c), 3) * products[lane_of(c)] * share;
    });
    runs_.fill(constants + 3 * kTile, group,
               [&](int64_t c) { return -scale_[c] * inverse(c) * sums[lane_of(c)] * share; });
  }

  ChannelRuns runs_;
  Partial* partials_;
  bool is_test_;
  double epsilon_;
  const float *x_, *scale_, *mean_, *variance_;
  const uint8_t* mask_;
  float *dx_, *g_, *dscale_, *dbias_;  // g: dy behind the activation, which is dz
  std::vector<const float*> dy_;
  std::vector<float> constants_;  // of each group: mean, and the factors of combine()
};

// x's layout where it has runs of channels, else the plain one.
Layout chosen(const LayoutQuery& query) {
  const Shape& x = query.input_var(0).shape;
  const std::optional<Layout>& now = query.input(0);
  return now && cpu::has_channel_runs(*now, x) ? *now : Layout::plain(x);
}

void forward_layouts(LayoutQuery& query) {
  const Layout layout = chosen(query);
  query.need(0, layout);
  query.need(5, layout);
  query.give(0, layout);
  if (query.has_output(5)) query.give(5, Layout::opaque(layout.elements(), "bn_add_mask"));
  query.workspace(partial_bytes(query.input_var(0).shape));
}

void backward_layouts(LayoutQuery& query) {
  const Layout layout = chosen(query);
  query.need(0, layout);
  query.need(4, *query.input(4));
  for (int i = 5; i < query.input_count(); ++i) query.need(i, layout);
  query.give(0, layout);
  query.give(1, layout);
  const bool nowhere = !query.has_output(0) && !query.has_output(1);
  query.workspace(partial_bytes(query.input_var(0).shape) +
                  (nowhere ? layout.elements() * sizeof(float) : 0));
}

template <typename Body>
std::unique_ptr<Kernel> kernel_of(KernelContext& context) {
  auto body = std::make_shared<Body>(context);
  return make_kernel([body](Stream&) { body->run(); });
}

}  // namespace

FLEET_KERNEL(cpu, fused_bn_add_activation) {
  def.layouts = forward_layouts;
  def.create = kernel_of<Forward>;
}

FLEET_KERNEL(cpu, fused_bn_add_activation_grad) {
  def.layouts = backward_layouts;
  def.create = kernel_of<Backward>;
}

}  // namespace fleet
