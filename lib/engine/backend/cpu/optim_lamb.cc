#include <cmath>

#include "backend/cpu/optim_update.h"

namespace fleet {
namespace {

using cpu::UpdateChunks;
using Stretch = cpu::UpdateChunks::Stretch;
using Sums = UpdateChunks::Sums;

struct LambConstants {
  float scale;
  float beta1, beta2, epsilon;
  float rest1, rest2;              // 1 - beta1, 1 - beta2, rounded once
  float correction1, correction2;  // 1 / (1 - beta1^t), 1 / sqrt(1 - beta2^t)
  float decay, coupled;
};

// One element of r.
FLEET_INLINE float direction(float moment1, float moment2, float parameter, LambConstants k) {
  return moment1 * k.correction1 / (std::sqrt(moment2) * k.correction2 + k.epsilon) +
         k.decay * parameter;
}

// Updates the moments. Returns the sums of squares of the parameter's elements and of r's.
FLEET_SIMD Sums measure_lamb(const Stretch& at, LambConstants k) {
  float *parameter = at.parameter, *moment1 = at.state(0), *moment2 = at.state(1);
  const float* gradient = at.gradient;
  float p2 = 0, r2 = 0;
#pragma omp simd reduction(+ : p2, r2)
  for (int64_t i = 0; i < at.count; ++i) {
    const float g = gradient[i] * k.scale + k.coupled * parameter[i];
    const float m1 = k.beta1 * moment1[i] + k.rest1 * g;
    const float m2 = k.beta2 * moment2[i] + k.rest2 * g * g;
    moment1[i] = m1;
    moment2[i] = m2;
    const float r = direction(m1, m2, parameter[i], k);
    p2 += parameter[i] * parameter[i];
    r2 += r * r;
  }
  return {p2, r2};
}

FLEET_SIMD void update_lamb(const Stretch& at, LambConstants k, float rate) {
  float* parameter = at.parameter;
  const float *moment1 = at.state(0), *moment2 = at.state(1);
#pragma omp simd
  for (int64_t i = 0; i < at.count; ++i) {
    parameter[i] -= rate * direction(moment1[i], moment2[i], parameter[i], k);
  }
}

// The attributes, and the memory of a step.
struct Lamb {
  explicit Lamb(KernelContext& context)
      : chunks(context),
        step(context.inputs[kUpdateOtherInputs].as<int64_t>()),
        beta1(context.attributes().number("beta1")),
        beta2(context.attributes().number("beta2")),
        epsilon(context.attributes().number("epsilon")),
        decay(context.attributes().number("weight_decay")),
        coupled(context.attributes().number("coupled_weight_decay")) {}

  void operator()(Stream&) {
    const double t = static_cast<double>(*step);
    const LambConstants k{.scale = chunks.gradient_scale(),
                          .beta1 = static_cast<float>(beta1),
                          .beta2 = static_cast<float>(beta2),
                          .epsilon = static_cast<float>(epsilon),
                          .rest1 = static_cast<float>(1 - beta1),
                          .rest2 = static_cast<float>(1 - beta2),
                          .correction1 = static_cast<float>(1 / (1 - std::pow(beta1, t))),
                          .correction2 = static_cast<float>(1 / std::sqrt(1 - std::pow(beta2, t))),
                          .decay = static_cast<float>(decay),
                          .coupled = static_cast<float>(coupled)};
    chunks.run_measured(
        [=](const Stretch& at) { return measure_lamb(at, k); },
        [&](const Stretch& at, const Sums& sums) { update_lamb(at, k, rate_of(sums)); }, scratch);
  }

  float rate_of(const Sums& sums) const {
    const double p = std::sqrt(sums.first), r = std::sqrt(sums.second);
    const double trust = p > 0 && r > 0 ? p / r : 1;
    return static_cast<float>(chunks.learning_rate() * trust);
  }

  UpdateChunks chunks;
  const int64_t* step;
  double beta1, beta2, epsilon, decay, coupled;
  std::vector<Sums> scratch;
};

}  // namespace

FLEET_KERNEL(cpu, lamb) {
  def.layouts = cpu::update_layouts;
  def.create = [](KernelContext& context) { return make_kernel(Lamb(context)); };
}

}  // namespace fleet
