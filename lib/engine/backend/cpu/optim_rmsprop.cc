#include <cmath>

#include "backend/cpu/optim_update.h"

namespace fleet {
namespace {

using Stretch = cpu::UpdateChunks::Stretch;

struct RmspropConstants {
  float scale, rate, decay;
  float alpha, rest;  // rest: 1 - alpha, rounded once
  float epsilon, momentum;
};

template <bool centered, bool with_momentum>
FLEET_INLINE void rmsprop_loop(const Stretch& at, RmspropConstants k) {
  float *parameter = at.parameter, *square = at.state(0);
  float* mean = centered ? at.state(1) : nullptr;
  float* momentum = with_momentum ? at.state(centered ? 2 : 1) : nullptr;
  const float* gradient = at.gradient;
#pragma omp simd
  for (int64_t i = 0; i < at.count; ++i) {
    const float g = gradient[i] * k.scale + k.decay * parameter[i];
    const float s = k.alpha * square[i] + k.rest * g * g;
    square[i] = s;
    float variance = s;
    if constexpr (centered) {
      const float m = k.alpha * mean[i] + k.rest * g;
      mean[i] = m;
      variance = s - m * m;
      variance = variance < 0 ? 0 : variance;  // keeps NaN
    }
    float d = g / (std::sqrt(variance) + k.epsilon);
    if constexpr (with_momentum) {
      d = k.momentum * momentum[i] + d;
      momentum[i] = d;
    }
    parameter[i] -= k.rate * d;
  }
}

FLEET_SIMD void without_momentum(const Stretch& at, RmspropConstants k) {
  rmsprop_loop<false, false>(at, k);
}
FLEET_SIMD void with_momentum(const Stretch& at, RmspropConstants k) {
  rmsprop_loop<false, true>(at, k);
}
FLEET_SIMD void centered(const Stretch& at, RmspropConstants k) {
  rmsprop_loop<true, false>(at, k);
}
FLEET_SIMD void centered_momentum(const Stretch& at, RmspropConstants k) {
  rmsprop_loop<true, true>(at, k);
}

void define_rmsprop(KernelDef& def, void (*update)(const Stretch&, RmspropConstants)) {
  def.layouts = cpu::update_layouts;
  def.create = [update](KernelContext& context) {
    const Attributes& attributes = context.attributes();
    const double alpha = attributes.number("alpha");
    RmspropConstants k{.scale = 1,
                       .rate = 0,
                       .decay = static_cast<float>(attributes.number("weight_decay")),
                       .alpha = static_cast<float>(alpha),
                       .rest = static_cast<float>(1 - alpha),
                       .epsilon = static_cast<float>(attributes.number("epsilon")),
                       .momentum = static_cast<float>(attributes.number("momentum"))};
    return make_kernel([=, chunks = cpu::UpdateChunks(context)](Stream&) mutable {
      k.scale = chunks.gradient_scale();
      k.rate = chunks.learning_rate();
      chunks.run([=](const Stretch& at) { update(at, k); });
    });
  };
}

}  // namespace

FLEET_KERNEL(cpu, rmsprop) { define_rmsprop(def, without_momentum); }
FLEET_KERNEL(cpu, rmsprop_momentum) { define_rmsprop(def, with_momentum); }
FLEET_KERNEL(cpu, rmsprop_centered) { define_rmsprop(def, centered); }
FLEET_KERNEL(cpu, rmsprop_centered_momentum) { define_rmsprop(def, centered_momentum); }

}  // namespace fleet
