// Batch normalization in parts (ops/batch_norm_sums.cc), with the loops of norm_loops.cc: one pass
// over memory computes the sums, the next one uses them.
#include <cmath>

#include "backend/cpu/norm_loops.h"
#include "backend/cpu/norm_runs.h"

namespace fleet {
namespace {

using cpu::ChannelRuns;

// Calls body(group, part) for all runs.
template <typename Body>
void for_each_run(const ChannelRuns& runs, Body body) {
#pragma omp parallel for collapse(2)
  for (int64_t part = 0; part < runs.parts; ++part) {
    for (int64_t group = 0; group < runs.groups; ++group) body(group, part);
  }
}

// Two sums per channel over all parts: give(channel, first, second).
template <typename Give>
void add_up(const ChannelRuns& runs, const double* sums, Give give) {
#pragma omp parallel for
  for (int64_t channel = 0; channel < runs.channels; ++channel) {
    double totals[2] = {};
    for (int64_t part = 0; part < runs.parts; ++part) {
      for (int which = 0; which < 2; ++which) {
        const double* of_part = sums + runs.sums_of(part, which);
        double total = 0;
        runs.for_each_position(channel, [&](int64_t p) { total += of_part[p]; });
        totals[which] += total;
      }
    }
    give(channel, static_cast<float>(totals[0]), static_cast<float>(totals[1]));
  }
}

// Constants by position. value(channel) returns one.
template <typename Value>
void fill(const ChannelRuns& runs, std::vector<float>& constants, Value value) {
  for (int64_t channel = 0; channel < runs.channels; ++channel) {
    const auto constant = static_cast<float>(value(channel));
    runs.for_each_position(channel, [&](int64_t p) { constants[p] = constant; });
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
        shift_(runs_.positions),
        sums_(static_cast<double*>(context.workspace)) {}

  void run() {
    fill(runs_, shift_, [&](int64_t c) { return mean_[c]; });
    for_each_run(runs_, [&](int64_t group, int64_t part) {
      const cpu::Span span = runs_.span(part, group);
      const int64_t position = runs_.position(group), width = span.columns * cpu::kTileLanes;
      double* sums = sums_ + runs_.sums_of(part, 0) + position;
      double* squares = sums_ + runs_.sums_of(part, 1) + position;
      std::fill_n(sums, width, 0.0);
      std::fill_n(squares, width, 0.0);
      cpu::norm_runs::add_moments(span, x_ + runs_.offset(part, group), shift_.data() + position,
                                  sums, squares);
    });
    add_up(runs_, sums_, [&](int64_t channel, float sum, float squares) {
      sum_[channel] = sum;
      squares_[channel] = squares;
    });
  }

 private:
  const ChannelRuns runs_;
  const T* x_;
  const float* mean_;
  float *sum_, *squares_;
  std::vector<float> shift_;  // per position
  double* sums_;
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
        terms_mean_(runs_.positions),
        terms_factor_(runs_.positions),
        terms_bias_(runs_.positions) {}

  void run() {
    fill(runs_, terms_mean_, [&](int64_t c) { return mean_[c]; });
    fill(runs_, terms_factor_,
         [&](int64_t c) { return scale_[c] * inverse_of(variance_[c], epsilon_); });
    fill(runs_, terms_bias_, [&](int64_t c) { return bias_[c]; });
    const cpu::norm_runs::Terms terms{terms_mean_.data(), terms_factor_.data(), terms_bias_.data()};
    for_each_run(runs_, [&](int64_t group, int64_t part) {
      const int64_t at = runs_.offset(part, group);
      cpu::norm_runs::apply(runs_.span(part, group), x_ + at, z_ ? z_ + at : nullptr,
                            terms.from(runs_.position(group)), relu_, y_ + at,
                            mask_ ? mask_ + runs_.tile(part, group) : nullptr);
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
  std::vector<float> terms_mean_, terms_factor_, terms_bias_;  // per position
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
        means_(runs_.positions),
        partial_sums_(static_cast<double*>(context.workspace)) {
    for (size_t i = kGradients; i < context.inputs.size(); ++i) {
      gradient_.dy.push_back(context.inputs[i].as<const T>());
    }
  }

  void run() {
    fill(runs_, means_, [&](int64_t c) { return mean_[c]; });
    for_each_run(runs_, [&](int64_t group, int64_t part) {
      gradient_.add_up(runs_, part, group, x_, means_.data(), partial_sums_);
    });
    add_up(runs_, partial_sums_, [&](int64_t channel, float sum, float moment) {
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
  std::vector<float> means_;  // per position
  double* partial_sums_;
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
        means_(runs_.positions),
        a_(runs_.positions),
        b_(runs_.positions),
        c_(runs_.positions) {
    const int64_t count = context.attributes().integer("count");
    share_ = 1 / static_cast<double>(count > 0 ? count : runs_.values);
  }

  void run() {
    const auto inverse = [&](int64_t c) { return inverse_of(variance_[c], epsilon_); };
    const auto factor = [&](int64_t c) { return scale_[c] * inverse(c); };
    fill(runs_, means_, [&](int64_t c) { return mean_[c]; });
    fill(runs_, a_, factor);
    fill(runs_, b_, [&](int64_t c) { return -factor(c) * inverse(c) * product_[c] * share_; });
    fill(runs_, c_, [&](int64_t c) { return -factor(c) * sum_[c] * share_; });
    for_each_run(runs_, [&](int64_t group, int64_t part) {
      const int64_t at = runs_.offset(part, group), position = runs_.position(group);
      cpu::norm_runs::combine(runs_.span(part, group), dz_ + at,
                              mask_ ? mask_ + runs_.tile(part, group) : nullptr, x_ + at,
                              {means_.data() + position, a_.data() + position, b_.data() + position,
                               c_.data() + position},
                              dx_ + at);
    });
  }

 private:
  const ChannelRuns runs_;
  const T *x_, *dz_;
  const float *scale_, *mean_, *variance_, *product_, *sum_;
  const uint16_t* mask_;
  T* dx_;
  const double epsilon_;
  double share_;                          // weight of one value in the means over the batch
  std::vector<float> means_, a_, b_, c_;  // per position
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
