#include "backend/cpu/norm_loops.h"

#include <cmath>

#include "backend/cpu/norm_runs.h"

namespace fleet::cpu {
namespace {

using norm_runs::add_moments;
using norm_runs::Factors;
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
        sums_(static_cast<double*>(arguments.workspace)),
        mean_(runs_.positions),
        factor_(runs_.positions),
        bias_(runs_.positions),
        batch_(runs_.channels) {}

  void run() {
    for_each_group(
        runs_, sizeof(T), large_images(arg_.activation),
        [&](int64_t group, int64_t part) {
          if (!arg_.is_test) measure(group, part);
        },
        [&](int64_t begin, int64_t end) {
          for (int64_t channel = begin; channel < end; ++channel) settle(channel);
        },
        [&](int64_t group, int64_t part) {
          const Terms terms =
              Terms{mean_.data(), factor_.data(), bias_.data()}.from(runs_.position(group));
          const Span span = runs_.span(part, group);
          const int64_t at = runs_.offset(part, group);
          if (arg_.activation != Recomputed::kNone) return activate(span, terms, at);
          norm_runs::apply(span, x_ + at, z_ ? z_ + at : nullptr, terms, arg_.relu, y_ + at,
                           arg_.mask ? arg_.mask + runs_.tile(part, group) : nullptr);
        });
  }

 private:
  // Sums differences to a value of the channel, so that a large mean costs no digits.
  void measure(int64_t group, int64_t part) {
    const Span span = runs_.span(part, group);
    const int64_t width = span.columns * kTileLanes, position = runs_.position(group);
    float shift[kMaxColumns * kTileLanes];
    runs_.first_values(part, group, x_, shift);
    double* sums = sums_ + runs_.sums_of(part, 0) + position;
    double* squares = sums_ + runs_.sums_of(part, 1) + position;
    std::fill_n(sums, width, 0.0);
    std::fill_n(squares, width, 0.0);
    add_moments(span, x_ + runs_.offset(part, group), shift, sums, squares);
  }

  void activate(Span rest, const Terms& terms, int64_t at) {
    while (!rest.is_empty()) {
      const Span span = rest.take(norm_runs::block_rows(rest, true));
      norm_runs::activate(span, x_ + at, terms, arg_.activation, y_ + at);
      at += span.rows * span.stride;
    }
  }

  void settle(int64_t channel) {
    arg_.is_test ? keep(channel) : update(channel);
    const double mean = arg_.is_test ? arg_.mean[channel] : batch_[channel].mean;
    const double variance =
        arg_.is_test ? arg_.variance[channel] : batch_[channel].squares / batch_[channel].count;
    const double factor = arg_.scale[channel] / std::sqrt(variance + arg_.epsilon);
    runs_.for_each_position(channel, [&](int64_t p) {
      mean_[p] = static_cast<float>(mean);
      factor_[p] = static_cast<float>(factor);
      bias_[p] = arg_.bias[channel];
    });
  }

  void update(int64_t channel) {
    Moments moments;
    for (int64_t part = 0; part < runs_.parts; ++part) {
      const double *sums = sums_ + runs_.sums_of(part, 0),
                   *squares = sums_ + runs_.sums_of(part, 1);
      double sum = 0, square = 0;
      runs_.for_each_position(channel, [&](int64_t p) {
        sum += sums[p];
        square += squares[p];
      });
      const auto each = static_cast<double>(runs_.values_of(part));
      const double shift = x_[runs_.first_of(part, channel)];
      moments.add(each, shift + sum / each, square - sum * sum / each);
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
  double* sums_;
  std::vector<float> mean_, factor_, bias_;  // per position
  std::vector<Moments> batch_;               // per channel
};

template <typename T>
class Backward {
 public:
  explicit Backward(const NormBackwardArguments& arguments)
      : arg_(arguments),
        runs_(arguments.x.shape, arguments.x.layout),
        x_(arguments.x.as<T>()),
        dx_(static_cast<T*>(arguments.dx)),
        sums_(static_cast<double*>(arguments.workspace)),
        mean_(runs_.positions),
        a_(runs_.positions),
        b_(runs_.positions),
        c_(runs_.positions),
        factor_(recomputes() ? runs_.positions : 0),
        bias_(factor_.size()),
        gradient_{{},
                  arguments.mask,
                  static_cast<T*>(arguments.dz),
                  arguments.activation,
                  {mean_.data(), factor_.data(), bias_.data()}} {
    for (const void* dy : arguments.dy) gradient_.dy.push_back(static_cast<const T*>(dy));
    // The gradient after the activation is stored if it is an output, a sum or recomputed.
    if (arg_.dz || (gradient_.dy.size() == 1 && !recomputes())) return;
    gradient_.formed = dx_;
    FLEET_CHECK(dx_ || recomputes(), "a sum of gradients without an output");
  }

  void run() {
    for (int64_t channel = 0; channel < runs_.channels; ++channel) set_terms(channel);
    for_each_group(
        runs_, sizeof(T), large_images(arg_.activation),
        [&](int64_t group, int64_t part) {
          gradient_.add_up(runs_, part, group, x_, mean_.data(), sums_);
        },
        [&](int64_t begin, int64_t end) {
          for (int64_t channel = begin; channel < end; ++channel) settle(channel);
        },
        [&](int64_t group, int64_t part) {
          if (!dx_) return;
          const int64_t at = runs_.offset(part, group), position = runs_.position(group);
          const uint16_t* mask = gradient_.mask_of_values();
          norm_runs::combine(runs_.span(part, group), gradient_.values() + at,
                             mask ? mask + runs_.tile(part, group) : nullptr, x_ + at,
                             Factors{mean_.data() + position, a_.data() + position,
                                     b_.data() + position, c_.data() + position},
                             dx_ + at);
        });
  }

 private:
  bool recomputes() const { return arg_.activation != Recomputed::kNone; }
  double inverse(int64_t c) const { return 1 / std::sqrt(arg_.variance[c] + arg_.epsilon); }

  void set_terms(int64_t channel) {
    const auto factor =
        recomputes() ? static_cast<float>(arg_.scale[channel] * inverse(channel)) : 0.0f;
    runs_.for_each_position(channel, [&](int64_t p) {
      mean_[p] = arg_.mean[channel];
      if (!recomputes()) return;
      factor_[p] = factor;
      bias_[p] = arg_.bias[channel];
    });
  }

  void settle(int64_t channel) {
    double sum = 0, product = 0;
    for (int64_t part = 0; part < runs_.parts; ++part) {
      const double *sums = sums_ + runs_.sums_of(part, 0),
                   *products = sums_ + runs_.sums_of(part, 1);
      double of_part = 0, products_of_part = 0;
      runs_.for_each_position(channel, [&](int64_t p) {
        of_part += sums[p];
        products_of_part += products[p];
      });
      sum += of_part;
      product += products_of_part;
    }
    const double inverse = this->inverse(channel), factor = arg_.scale[channel] * inverse;
    if (arg_.dscale) arg_.dscale[channel] = static_cast<float>(product * inverse);
    if (arg_.dbias) arg_.dbias[channel] = static_cast<float>(sum);
    // Given statistics do not depend on x.
    const double share = arg_.is_test ? 0 : 1 / static_cast<double>(runs_.values);
    runs_.for_each_position(channel, [&](int64_t p) {
      a_[p] = static_cast<float>(factor);
      b_[p] = static_cast<float>(-factor * inverse * inverse * product * share);
      c_[p] = static_cast<float>(-factor * sum * share);
    });
  }

  const NormBackwardArguments arg_;
  const ChannelRuns runs_;
  const T* x_;
  T* dx_;
  double* sums_;
  std::vector<float> mean_, a_, b_, c_, factor_, bias_;  // per position
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
  return static_cast<size_t>(ChannelRuns(x, layout).sums()) * sizeof(double);
}

Layout norm_mask(const Shape& x, const Layout& layout) {
  const int64_t words = ChannelRuns(x, layout).tiles();
  return Layout::opaque(words * static_cast<int64_t>(sizeof(uint16_t)), "norm_loops_mask");
}

std::unique_ptr<Kernel> norm_forward_kernel(const NormForwardArguments& arguments) {
  return kernel_of<Forward>(arguments);
}

std::unique_ptr<Kernel> norm_backward_kernel(const NormBackwardArguments& arguments) {
  return kernel_of<Backward>(arguments);
}

}  // namespace fleet::cpu
