#include <cmath>

#include "backend/cpu/optim_update.h"

namespace fleet {
namespace {

using cpu::UpdateChunks;
using Stretch = cpu::UpdateChunks::Stretch;
using Sums = UpdateChunks::Sums;

struct LarsConstants {
  float scale, momentum, decay, coupled;
};

// The sums of squares of the parameter's elements and of its gradient's.
FLEET_SIMD Sums squares(const Stretch& at, LarsConstants k) {
  const float *parameter = at.parameter, *gradient = at.gradient;
  float p2 = 0, g2 = 0;
#pragma omp simd reduction(+ : p2, g2)
  for (int64_t i = 0; i < at.count; ++i) {
    const float g = gradient[i] * k.scale + k.coupled * parameter[i];
    p2 += parameter[i] * parameter[i];
    g2 += g * g;
  }
  return {p2, g2};
}

FLEET_SIMD void update_lars(const Stretch& at, LarsConstants k, float rate) {
  float *parameter = at.parameter, *velocity = at.state(0);
  const float* gradient = at.gradient;
#pragma omp simd
  for (int64_t i = 0; i < at.count; ++i) {
    const float g = gradient[i] * k.scale + k.coupled * parameter[i];
    velocity[i] = k.momentum * velocity[i] + rate * (g + k.decay * parameter[i]);
    parameter[i] -= velocity[i];
  }
}

// The attributes, and the memory of a step.
struct Lars {
  explicit Lars(KernelContext& context)
      : chunks(context),
        momentum(static_cast<float>(context.attributes().number("momentum"))),
        coupled(static_cast<float>(context.attributes().number("coupled_weight_decay"))),
        coeff(context.attributes().number("lars_coeff")),
        decay(context.attributes().number("weight_decay")),
        epsilon(context.attributes().number("epsilon")) {}

  void operator()(Stream&) {
    const LarsConstants k{chunks.gradient_scale(), momentum, static_cast<float>(decay), coupled};
    if (decay <= 0) {
      chunks.run(
          [=, rate = chunks.learning_rate()](const Stretch& at) { update_lars(at, k, rate); });
      return;
    }
    chunks.run_measured(
        [=](const Stretch& at) { return squares(at, k); },
        [&](const Stretch& at, const Sums& sums) { update_lars(at, k, rate_of(sums)); }, scratch);
  }

  float rate_of(const Sums& sums) const {
    const double rate = chunks.learning_rate(), p = std::sqrt(sums.first),
                 g = std::sqrt(sums.second);
    const bool scaled = p > 0 && g > 0;
    return static_cast<float>(scaled ? rate * coeff * p / (g + decay * p + epsilon) : rate);
  }

  UpdateChunks chunks;
  float momentum, coupled;
  double coeff, decay, epsilon;
  std::vector<Sums> scratch;
};

}  // namespace

FLEET_KERNEL(cpu, lars) {
  def.layouts = cpu::update_layouts;
  def.create = [](KernelContext& context) { return make_kernel(Lars(context)); };
}

}  // namespace fleet
