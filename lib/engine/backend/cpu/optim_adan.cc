#include <cmath>

#include "backend/cpu/optim_update.h"

namespace fleet {
namespace {

using Stretch = cpu::UpdateChunks::Stretch;

struct AdanConstants {
  float scale;
  float beta1, beta2, beta3, epsilon;
  float rest1, rest2, rest3;    // 1 - beta, rounded once
  float rate, difference_rate;  // lr / (1 - beta1^t), lr * beta2 / (1 - beta2^t)
  float root_correction;        // 1 / sqrt(1 - beta3^t)
  float keep, shrink;           // factors of the parameter before and after the step
  float differs;                // 0 for the first update, which has no previous gradient; else 1
};

FLEET_SIMD void adan(const Stretch& at, AdanConstants k) {
  float *parameter = at.parameter, *moment = at.state(0), *difference = at.state(1);
  float *square = at.state(2), *previous = at.state(3);
  const float* gradient = at.gradient;
#pragma omp simd
  for (int64_t i = 0; i < at.count; ++i) {
    const float g = gradient[i] * k.scale;
    const float d = k.differs * (g - previous[i]);
    const float ahead = g + k.beta2 * d;
    const float m = k.beta1 * moment[i] + k.rest1 * g;
    const float v = k.beta2 * difference[i] + k.rest2 * d;
    const float n = k.beta3 * square[i] + k.rest3 * ahead * ahead;
    moment[i] = m;
    difference[i] = v;
    square[i] = n;
    previous[i] = g;
    const float step =
        (k.rate * m + k.difference_rate * v) / (std::sqrt(n) * k.root_correction + k.epsilon);
    parameter[i] = (parameter[i] * k.keep - step) * k.shrink;
  }
}

struct AdanRule {
  double beta1, beta2, beta3, epsilon, decay;
  bool no_prox;
  explicit AdanRule(const Attributes& attributes)
      : beta1(attributes.number("beta1")),
        beta2(attributes.number("beta2")),
        beta3(attributes.number("beta3")),
        epsilon(attributes.number("epsilon")),
        decay(attributes.number("weight_decay")),
        no_prox(attributes.boolean("no_prox")) {}

  AdanConstants at(int64_t step, double rate, float scale) const {
    const double t = static_cast<double>(step);
    return {.scale = scale,
            .beta1 = static_cast<float>(beta1),
            .beta2 = static_cast<float>(beta2),
            .beta3 = static_cast<float>(beta3),
            .epsilon = static_cast<float>(epsilon),
            .rest1 = static_cast<float>(1 - beta1),
            .rest2 = static_cast<float>(1 - beta2),
            .rest3 = static_cast<float>(1 - beta3),
            .rate = static_cast<float>(rate / (1 - std::pow(beta1, t))),
            .difference_rate = static_cast<float>(rate * beta2 / (1 - std::pow(beta2, t))),
            .root_correction = static_cast<float>(1 / std::sqrt(1 - std::pow(beta3, t))),
            .keep = static_cast<float>(no_prox ? 1 - rate * decay : 1),
            .shrink = static_cast<float>(no_prox ? 1 : 1 / (1 + rate * decay)),
            .differs = step > 1 ? 1.f : 0.f};
  }
};

}  // namespace

FLEET_KERNEL(cpu, adan) {
  def.layouts = cpu::update_layouts;
  def.create = [](KernelContext& context) {
    const int64_t* step = context.inputs[kUpdateOtherInputs].as<int64_t>();
    return make_kernel([chunks = cpu::UpdateChunks(context), rule = AdanRule(context.attributes()),
                        step](Stream&) {
      const AdanConstants k = rule.at(*step, chunks.learning_rate(), chunks.gradient_scale());
      chunks.run([=](const Stretch& at) { adan(at, k); });
    });
  };
}

}  // namespace fleet
