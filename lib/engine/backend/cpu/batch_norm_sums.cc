// Batch normalization in parts (ops/batch_norm_sums.cc), with the loops of norm_loops.cc: one pass
// over memory computes the sums, the next one uses them.
#include <cmath>

#include "backend/cpu/norm_loops.h"
#include "backend/cpu/norm_runs.h"

namespace fleet {
namespace {

using cpu::ChannelRuns;
using cpu::norm_runs::Partial;

// Calls body(group, image) for all runs.
template <typename Body>
void for_each_run(const ChannelRuns& runs, Body body) {
#pragma omp parallel for collapse(2)
  for (int64_t image = 0; image < runs.images; ++image) {
    for (int64_t group = 0; group < runs.groups; ++group) body(group, image);
  }
}

// Two sums per channel over all images: give(channel, first, second).
template <typename Give>
void add_up(const ChannelRuns& runs, const Partial* partials, Give give) {
#pragma omp parallel for
  for (int64_t group = 0; group < runs.groups; ++group) {
    for (int64_t lane = 0; lane < runs.lanes; ++lane) {
      const int64_t channel = group * runs.lanes + lane;
      if (channel >= runs.channels) break;
      double first = 0, second = 0;
      for (int64_t image = 0; image < runs.images; ++image) {
        const Partial& partial = partials[group * runs.images + image];
        first += runs.fold(partial.first, lane);
        second += runs.fold(partial.second, lane);
      }
      give(channel, static_cast<float>(first), static_cast<float>(second));
    }
  }
}

double inverse_of(float variance, double epsilon) { return 1 / std::sqrt(variance + epsilon); }

template <typename T>
class Sums {
 public:
  explicit Sums(const KernelContext& context)
      : runs_(context.inputs[0].shape, context.inputs[0].layout),
        x_(context.inputs[0].as<const T>()),
        mean_(context.inputs[1].as<const float>()),
        sum_(context.outputs[0].as<float>()),
        squares_(context.outputs[1].as<float>()),
        partials_(static_cast<Partial*>(context.workspace)) {}

  void run() {
    for_each_run(runs_, [&](int64_t group, int64_t image) {
      float shift[cpu::kTileLanes];
      runs_.fill(shift, group, [&](int64_t c) { return mean_[c]; });
      Partial& partial = partials_[group * runs_.images + image];
      partial = {};
      cpu::norm_runs::add_moments(x_ + runs_.offset(image, group), shift, runs_.length,
                                  partial.first, partial.second);
    });
    add_up(runs_, partials_, [&](int64_t channel, float sum, float squares) {
      sum_[channel] = sum;
      squares_[channel] = squares;
    });
  }

 private:
  const ChannelRuns runs_;
  const T* x_;
  const float* mean_;
  float *sum_, *squares_;
  Partial* partials_;
};

template <typename T>
class Apply {
 public:
  explicit Apply(const KernelContext& context)
      : runs_(context.inputs[0].shape, context.inputs[0].layout),
        x_(context.inputs[0].as<const T>()),
        z_(context.inputs[5].as<const T>()),
        scale_(context.inputs[1].as<const float>()),
        bias_(context.inputs[2].as<const float>()),
        mean_(context.inputs[3].as<const float>()),
        variance_(context.inputs[4].as<const float>()),
        y_(context.outputs[0].as<T>()),
        mask_(context.outputs[1].as<uint16_t>()),
        relu_(!context.attributes().text("activation").empty()),
        epsilon_(context.attributes().number("epsilon")),
        terms_(runs_.groups) {}

  void run() {
    for (int64_t group = 0; group < runs_.groups; ++group) {
      runs_.fill(terms_[group].mean, group, [&](int64_t c) { return mean_[c]; });
      runs_.fill(terms_[group].factor, group,
                 [&](int64_t c) { return scale_[c] * inverse_of(variance_[c], epsilon_); });
      runs_.fill(terms_[group].bias, group, [&](int64_t c) { return bias_[c]; });
    }
    for_each_run(runs_, [&](int64_t group, int64_t image) {
      const int64_t at = runs_.offset(image, group);
      cpu::norm_runs::apply(x_ + at, z_ ? z_ + at : nullptr, terms_[group], relu_, runs_.length,
                            y_ + at, mask_ ? mask_ + runs_.tile(image, group) : nullptr);
    });
  }

 private:
  const ChannelRuns runs_;
  const T *x_, *z_;
  const float *scale_, *bias_, *mean_, *variance_;
  T* y_;
  uint16_t* mask_;
  const bool relu_;
  const double epsilon_;
  std::vector<cpu::norm_runs::Terms> terms_;  // per group
};

constexpr int kGradients = 4;  // index of the first dy of batch_norm_gradient_sums

template <typename T>
class GradientSums {
 public:
  explicit GradientSums(const KernelContext& context)
      : runs_(context.inputs[0].shape, context.inputs[0].layout),
        x_(context.inputs[0].as<const T>()),
        mean_(context.inputs[1].as<const float>()),
        variance_(context.inputs[2].as<const float>()),
        gradient_{{}, context.inputs[3].as<const uint16_t>(), context.outputs[4].as<T>()},
        products_{context.outputs[0].as<float>(), context.outputs[2].as<float>()},
        sums_{context.outputs[1].as<float>(), context.outputs[3].as<float>()},
        epsilon_(context.attributes().number("epsilon")),
        partials_(static_cast<Partial*>(context.workspace)) {
    for (size_t i = kGradients; i < context.inputs.size(); ++i) {
      gradient_.dy.push_back(context.inputs[i].as<const T>());
    }
  }

  void run() {
    for_each_run(runs_, [&](int64_t group, int64_t image) {
      float mean[cpu::kTileLanes];
      runs_.fill(mean, group, [&](int64_t c) { return mean_[c]; });
      gradient_.add_up(runs_, group, image, x_, mean, partials_[group * runs_.images + image]);
    });
    add_up(runs_, partials_, [&](int64_t channel, float sum, float moment) {
      const auto product = static_cast<float>(moment * inverse_of(variance_[channel], epsilon_));
      for (float* to : sums_) {
        if (to) to[channel] = sum;
      }
      for (float* to : products_) {
        if (to) to[channel] = product;
      }
    });
  }

 private:
  const ChannelRuns runs_;
  const T* x_;
  const float *mean_, *variance_;
  cpu::norm_runs::Gradient<T> gradient_;
  float *products_[2], *sums_[2];
  const double epsilon_;
  Partial* partials_;
};

template <typename T>
class DataGradient {
 public:
  explicit DataGradient(const KernelContext& context)
      : runs_(context.inputs[0].shape, context.inputs[0].layout),
        x_(context.inputs[0].as<const T>()),
        dz_(context.inputs[6].as<const T>()),
        scale_(context.inputs[1].as<const float>()),
        mean_(context.inputs[2].as<const float>()),
        variance_(context.inputs[3].as<const float>()),
        product_(context.inputs[4].as<const float>()),
        sum_(context.inputs[5].as<const float>()),
        mask_(context.inputs[7].as<const uint16_t>()),
        dx_(context.outputs[0].as<T>()),
        epsilon_(context.attributes().number("epsilon")),
        factors_(runs_.groups) {
    const int64_t count = context.attributes().integer("count");
    share_ = 1 / static_cast<double>(count > 0 ? count : runs_.values);
  }

  void run() {
    for (int64_t group = 0; group < runs_.groups; ++group) {
      cpu::norm_runs::Factors& factors = factors_[group];
      const auto inverse = [&](int64_t c) { return inverse_of(variance_[c], epsilon_); };
      const auto factor = [&](int64_t c) { return scale_[c] * inverse(c); };
      runs_.fill(factors.mean, group, [&](int64_t c) { return mean_[c]; });
      runs_.fill(factors.a, group, factor);
      runs_.fill(factors.b, group,
                 [&](int64_t c) { return -factor(c) * inverse(c) * product_[c] * share_; });
      runs_.fill(factors.c, group, [&](int64_t c) { return -factor(c) * sum_[c] * share_; });
    }
    for_each_run(runs_, [&](int64_t group, int64_t image) {
      const int64_t at = runs_.offset(image, group);
      cpu::norm_runs::combine(dz_ + at, mask_ ? mask_ + runs_.tile(image, group) : nullptr, x_ + at,
                              factors_[group], runs_.length, dx_ + at);
    });
  }

 private:
  const ChannelRuns runs_;
  const T *x_, *dz_;
  const float *scale_, *mean_, *variance_, *product_, *sum_;
  const uint16_t* mask_;
  T* dx_;
  const double epsilon_;
  double share_;  // weight of one value in the means over the batch
  std::vector<cpu::norm_runs::Factors> factors_;
};

template <template <typename> typename Body>
std::unique_ptr<Kernel> kernel_of(KernelContext& context) {
  return cpu::with_loop_type(context.inputs[0].dtype, [&]<typename T>(T) {
    auto body = std::make_shared<Body<T>>(context);
    return make_kernel([body](Stream&) { body->run(); });
  });
}

}  // namespace

FLEET_KERNEL(cpu, batch_norm_sums) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = [](LayoutQuery& query) {
    const Layout layout = cpu::channel_run_layout(query);
    query.need(0, layout);
    query.workspace(cpu::norm_workspace(query.input_var(0).shape, layout));
  };
  def.create = kernel_of<Sums>;
}

FLEET_KERNEL(cpu, batch_norm_apply) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = [](LayoutQuery& query) {
    const Layout layout = cpu::channel_run_layout(query);
    query.need(0, layout);
    if (query.has_input(5)) query.need(5, layout);
    query.give(0, layout);
    if (query.has_output(1)) query.give(1, cpu::norm_mask(query.input_var(0).shape, layout));
  };
  def.create = kernel_of<Apply>;
}

FLEET_KERNEL(cpu, batch_norm_gradient_sums) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = [](LayoutQuery& query) {
    const Layout layout = cpu::channel_run_layout(query);
    query.need(0, layout);
    if (query.has_input(3)) query.need(3, *query.input(3));
    for (int i = kGradients; i < query.input_count(); ++i) query.need(i, layout);
    if (query.has_output(4)) query.give(4, layout);
    query.workspace(cpu::norm_workspace(query.input_var(0).shape, layout));
  };
  def.create = kernel_of<GradientSums>;
}

FLEET_KERNEL(cpu, batch_norm_data_grad) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = [](LayoutQuery& query) {
    const Layout layout = cpu::channel_run_layout(query);
    query.need(0, layout);
    query.need(6, layout);
    if (query.has_input(7)) query.need(7, *query.input(7));
    query.give(0, layout);
  };
  def.create = kernel_of<DataGradient>;
}

}  // namespace fleet
