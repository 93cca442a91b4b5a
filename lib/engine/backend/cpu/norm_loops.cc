#include "backend/cpu/norm_loops.h"

#include <cmath>

#include "backend/cpu/norm_runs.h"

namespace fleet::cpu {
namespace {

using norm_runs::add_moments;
using norm_runs::Factors;
using norm_runs::kBlock;
using norm_runs::Partial;
using norm_runs::Recomputed;
using norm_runs::Terms;

// Processes one group of channels after another, so that the data that the first pass brings into
// the cache serves the second one.

// Combines mean and biased variance of parts (Chan et al. 1979).
struct Moments {
  double count = 0, mean = 0, squares = 0;
  void add(double more, double its_mean, double its_squares) {
    const double all = count + more, delta = its_mean - mean;
    squares += its_squares + delta * delta * count * more / all;
    mean += delta * more / all;
    count = all;
  }
};

// With a recomputed activation, more time passes between two passes over a group: its memory is
// worth keeping in the L2 cache.
size_t large_images(Recomputed activation) {
  return activation == Recomputed::kNone ? kLarge : size_t{1} << 20;
}

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
        runs_, sizeof(T), large_images(arg_.activation),
        [&](int64_t group, int64_t image) {
          if (!arg_.is_test) measure(group, image);
        },
        [&](int64_t group) { settle(group); },
        [&](int64_t group, int64_t image) {
          const int64_t at = runs_.offset(image, group);
          if (arg_.activation != Recomputed::kNone) return activate(group, at);
          norm_runs::apply(x_ + at, z_ ? z_ + at : nullptr, terms_[group], arg_.relu, runs_.length,
                           y_ + at, arg_.mask ? arg_.mask + runs_.tile(image, group) : nullptr);
        });
  }

 private:
  Partial& partial(int64_t group, int64_t image) { return partials_[group * runs_.images + image]; }

  // Sums differences to a value of the channel, so that a large mean costs no digits.
  void measure(int64_t group, int64_t image) {
    const T* x = x_ + runs_.offset(image, group);
    float shift[kTileLanes];
    for (int64_t l = 0; l < kTileLanes; ++l) shift[l] = x[l & (runs_.lanes - 1)];
    Partial& partial = this->partial(group, image);
    partial = {};
    add_moments(x, shift, runs_.length, partial.first, partial.second);
  }

  void activate(int64_t group, int64_t at) {
    for (int64_t begin = 0; begin < runs_.length; begin += kBlock) {
      norm_runs::activate(x_ + at + begin, terms_[group], arg_.activation,
                          std::min(kBlock, runs_.length - begin), y_ + at + begin);
    }
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
    const int64_t values = runs_.length / runs_.lanes;  // per image
    const auto each = static_cast<double>(values);
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
    const bool finite = std::isfinite(static_cast<float>(moments.mean)) &&
                        std::isfinite(static_cast<float>(moments.squares));
    const double mean = arg_.mean[channel], variance = arg_.variance[channel];
    set(arg_.mean_out, finite ? keep * mean + add * moments.mean : mean);
    set(arg_.variance_out,
        finite ? keep * variance + add * moments.squares / (moments.count - 1) : variance);
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
  std::vector<Terms> terms_;    // per group
  std::vector<Moments> batch_;  // per channel
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
        factors_(runs_.groups),
        terms_(arguments.activation == Recomputed::kNone ? 0 : runs_.groups),
        gradient_{{},
                  arguments.mask,
                  static_cast<T*>(arguments.dz),
                  arguments.activation,
                  terms_.data()} {
    for (const void* dy : arguments.dy) gradient_.dy.push_back(static_cast<const T*>(dy));
    // The gradient after the activation is stored if it is an output, a sum or recomputed.
    const bool recomputes = arg_.activation != Recomputed::kNone;
    if (arg_.dz || (gradient_.dy.size() == 1 && !recomputes)) return;
    gradient_.formed = dx_;
    FLEET_CHECK(dx_ || recomputes, "a sum of gradients without an output");
  }

  void run() {
    for (int64_t group = 0; group < runs_.groups; ++group) {
      runs_.fill(factors_[group].mean, group, [&](int64_t c) { return arg_.mean[c]; });
      if (!terms_.empty()) set_terms(group);
    }
    for_each_group(
        runs_, sizeof(T), large_images(arg_.activation),
        [&](int64_t group, int64_t image) {
          gradient_.add_up(runs_, group, image, x_, factors_[group].mean,
                           partials_[group * runs_.images + image]);
        },
        [&](int64_t group) { settle(group); },
        [&](int64_t group, int64_t image) {
          if (!dx_) return;
          const int64_t at = runs_.offset(image, group);
          const uint16_t* mask = gradient_.mask_of_values();
          norm_runs::combine(gradient_.values() + at,
                             mask ? mask + runs_.tile(image, group) : nullptr, x_ + at,
                             factors_[group], runs_.length, dx_ + at);
        });
  }

 private:
  double inverse(int64_t c) const { return 1 / std::sqrt(arg_.variance[c] + arg_.epsilon); }

  void set_terms(int64_t group) {
    Terms& terms = terms_[group];
    runs_.fill(terms.mean, group, [&](int64_t c) { return arg_.mean[c]; });
    runs_.fill(terms.factor, group, [&](int64_t c) { return arg_.scale[c] * inverse(c); });
    runs_.fill(terms.bias, group, [&](int64_t c) { return arg_.bias[c]; });
  }

  void settle(int64_t group) {
    double sums[kTileLanes] = {}, products[kTileLanes] = {};  // by lane
    for (int64_t image = 0; image < runs_.images; ++image) {
      const Partial& partial = partials_[group * runs_.images + image];
      for (int64_t lane = 0; lane < runs_.lanes; ++lane) {
        sums[lane] += runs_.fold(partial.first, lane);
        products[lane] += runs_.fold(partial.second, lane);
      }
    }
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
  T* dx_;
  Partial* partials_;
  std::vector<Factors> factors_;
  std::vector<Terms> terms_;  // per group, with a recomputed activation
  norm_runs::Gradient<T> gradient_;
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
