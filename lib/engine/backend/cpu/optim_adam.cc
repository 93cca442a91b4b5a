#include <cmath>

#include "backend/cpu/optim_update.h"

namespace fleet {
namespace {

using Stretch = cpu::UpdateChunks::Stretch;

struct AdamConstants {
  float scale;
  float beta1, beta2, epsilon;
  float rest1, rest2;     // 1 - beta1, 1 - beta2, rounded once
  float coupled_decay;    // added to the gradient
  float keep;             // factor of the parameter after decoupled decay
  float rate;             // learning rate / (1 - beta1^t)
  float root_correction;  // 1 / sqrt(1 - beta2^t)
};

template <bool amsgrad>
FLEET_INLINE void adam_loop(const Stretch& at, AdamConstants k) {
  float *parameter = at.parameter, *moment1 = at.state(0), *moment2 = at.state(1);
  float* max_moment2 = amsgrad ? at.state(2) : nullptr;
  const float* gradient = at.gradient;
#pragma omp simd
  for (int64_t i = 0; i < at.count; ++i) {
    const float g = gradient[i] * k.scale + k.coupled_decay * parameter[i];
    const float m1 = k.beta1 * moment1[i] + k.rest1 * g;
    const float m2 = k.beta2 * moment2[i] + k.rest2 * g * g;
    moment1[i] = m1;
    moment2[i] = m2;
    float bound = m2;
    if constexpr (amsgrad) {
      bound = max_moment2[i] > m2 ? max_moment2[i] : m2;  // NaN of m2 stays
      max_moment2[i] = bound;
    }
    const float step = m1 / (std::sqrt(bound) * k.root_correction + k.epsilon);
    parameter[i] = parameter[i] * k.keep - k.rate * step;
  }
}

FLEET_SIMD void adam(const Stretch& at, AdamConstants k) { adam_loop<false>(at, k); }
FLEET_SIMD void adam_amsgrad(const Stretch& at, AdamConstants k) { adam_loop<true>(at, k); }

// AdamConstants of all elements, from the attributes and this step's inputs.
struct AdamRule {
  double beta1, beta2, epsilon, decay;
  bool decoupled;
  explicit AdamRule(const Attributes& attributes)
      : beta1(attributes.number("beta1")),
        beta2(attributes.number("beta2")),
        epsilon(attributes.number("epsilon")),
        decay(attributes.number("weight_decay")),
        decoupled(attributes.boolean("decoupled")) {}

  AdamConstants at(int64_t step, double rate, float scale) const {
    const double t = static_cast<double>(step);
    return {.scale = scale,
            .beta1 = static_cast<float>(beta1),
            .beta2 = static_cast<float>(beta2),
            .epsilon = static_cast<float>(epsilon),
            .rest1 = static_cast<float>(1 - beta1),
            .rest2 = static_cast<float>(1 - beta2),
            .coupled_decay = static_cast<float>(decoupled ? 0 : decay),
            .keep = static_cast<float>(decoupled ? 1 - rate * decay : 1),
            .rate = static_cast<float>(rate / (1 - std::pow(beta1, t))),
            .root_correction = static_cast<float>(1 / std::sqrt(1 - std::pow(beta2, t)))};
  }
};

void define_adam(KernelDef& def, void (*update)(const Stretch&, AdamConstants)) {
  def.layouts = cpu::update_layouts;
  def.create = [update](KernelContext& context) {
    const int64_t* step = context.inputs[kUpdateOtherInputs].as<int64_t>();
    return make_kernel(
        [=, chunks = cpu::UpdateChunks(context), rule = AdamRule(context.attributes())](Stream&) {
          const AdamConstants k = rule.at(*step, chunks.learning_rate(), chunks.gradient_scale());
          chunks.run([=](const Stretch& at) { update(at, k); });
        });
  };
}

}  // namespace

FLEET_KERNEL(cpu, adam) { define_adam(def, adam); }
FLEET_KERNEL(cpu, adam_amsgrad) { define_adam(def, adam_amsgrad); }

}  // namespace fleet
