#include <algorithm>
#include <cmath>

#include "backend/cpu/elementwise.h"

namespace fleet {
namespace {

struct Finish {
  int64_t channels, count;
  const float *sum, *squares, *scale, *bias, *mean, *variance;
  float *mean_out, *variance_out, *saved_mean, *saved_variance, *inverse, *factor, *constant;
  bool shifted;
  double epsilon, momentum;

  // For one channel.
  void run(int64_t c) const {
    const double values = static_cast<double>(count), difference = sum[c] / values;
    const double batch_variance = std::max(squares[c] / values - difference * difference, 0.0);
    const double batch_mean = shifted ? mean[c] + difference : difference;
    const double scaled = scale[c] / std::sqrt(batch_variance + epsilon);
    const double unbiased = batch_variance * values / (values - 1);
    const auto set = [c](float* to, double value) {
      if (to) to[c] = static_cast<float>(value);
    };
    set(saved_mean, batch_mean);
    set(saved_variance, batch_variance);
    set(inverse, 1 / std::sqrt(batch_variance + epsilon));
    const bool finite = std::isfinite(static_cast<float>(batch_mean)) &&
                        std::isfinite(static_cast<float>(unbiased));
    set(mean_out, finite ? (1 - momentum) * mean[c] + momentum * batch_mean : mean[c]);
    set(variance_out, finite ? (1 - momentum) * variance[c] + momentum * unbiased : variance[c]);
    set(factor, scaled);
    set(constant, bias[c] - batch_mean * scaled);
  }
};

}  // namespace

FLEET_KERNEL(cpu, batch_norm_finalize) {
  def.create = [](KernelContext& context) {
    const std::vector<Argument>&in = context.inputs, &out = context.outputs;
    const Attributes& attributes = context.attributes();
    const Finish finish{.channels = in[0].shape[0],
                        .count = attributes.integer("count"),
                        .sum = in[0].as<float>(),
                        .squares = in[1].as<float>(),
                        .scale = in[2].as<float>(),
                        .bias = in[3].as<float>(),
                        .mean = in[4].as<float>(),
                        .variance = in[5].as<float>(),
                        .mean_out = out[0].as<float>(),
                        .variance_out = out[1].as<float>(),
                        .saved_mean = out[2].as<float>(),
                        .saved_variance = out[3].as<float>(),
                        .inverse = out[4].as<float>(),
                        .factor = out[5].as<float>(),
                        .constant = out[6].as<float>(),
                        .shifted = attributes.boolean("shifted"),
                        .epsilon = attributes.number("epsilon"),
                        .momentum = attributes.number("momentum")};
    return make_kernel([finish](Stream&) {
      for (int64_t c = 0; c < finish.channels; ++c) finish.run(c);
    });
  };
}

}  // namespace fleet
