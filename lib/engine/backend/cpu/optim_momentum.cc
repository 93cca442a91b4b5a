#include "backend/cpu/optim_update.h"

namespace fleet {
namespace {

using Stretch = cpu::UpdateChunks::Stretch;

struct MomentumConstants {
  float scale, rate, momentum, decay;
};

FLEET_SIMD void heavy_ball(const Stretch& at, MomentumConstants k) {
  float *parameter = at.parameter, *velocity = at.state(0);
  const float* gradient = at.gradient;
#pragma omp simd
  for (int64_t i = 0; i < at.count; ++i) {
    const float d = gradient[i] * k.scale + k.decay * parameter[i];
    velocity[i] = k.momentum * velocity[i] + d;
    parameter[i] -= k.rate * velocity[i];
  }
}

FLEET_SIMD void nesterov(const Stretch& at, MomentumConstants k) {
  float *parameter = at.parameter, *velocity = at.state(0);
  const float* gradient = at.gradient;
#pragma omp simd
  for (int64_t i = 0; i < at.count; ++i) {
    const float d = gradient[i] * k.scale + k.decay * parameter[i];
    velocity[i] = k.momentum * velocity[i] + d;
    parameter[i] -= k.rate * (d + k.momentum * velocity[i]);
  }
}

}  // namespace

FLEET_KERNEL(cpu, momentum) {
  def.layouts = cpu::update_layouts;
  def.create = [](KernelContext& context) {
    const float momentum = static_cast<float>(context.attributes().number("momentum"));
    const float decay = static_cast<float>(context.attributes().number("weight_decay"));
    const auto update = context.attributes().boolean("use_nesterov") ? nesterov : heavy_ball;
    return make_kernel([=, chunks = cpu::UpdateChunks(context)](Stream&) {
      const MomentumConstants k{chunks.gradient_scale(), chunks.learning_rate(), momentum, decay};
      chunks.run([=](const Stretch& at) { update(at, k); });
    });
  };
}

}  // namespace fleet
