#include "backend/cpu/optim_update.h"

namespace fleet {
namespace {

using Stretch = cpu::UpdateChunks::Stretch;

struct LionConstants {
  float scale, rate;
  float keep;  // factor of the parameter after decay
  float beta1, rest1, beta2, rest2;
};

FLEET_SIMD void lion(const Stretch& at, LionConstants k) {
  float *parameter = at.parameter, *momentum = at.state(0);
  const float* gradient = at.gradient;
#pragma omp simd
  for (int64_t i = 0; i < at.count; ++i) {
    const float g = gradient[i] * k.scale;
    const float direction = k.beta1 * momentum[i] + k.rest1 * g;
    const float sign = (direction > 0 ? 1.f : 0.f) - (direction < 0 ? 1.f : 0.f);
    parameter[i] = parameter[i] * k.keep - k.rate * sign;
    momentum[i] = k.beta2 * momentum[i] + k.rest2 * g;
  }
}

}  // namespace

FLEET_KERNEL(cpu, lion) {
  def.layouts = cpu::update_layouts;
  def.create = [](KernelContext& context) {
    const double beta1 = context.attributes().number("beta1");
    const double beta2 = context.attributes().number("beta2");
    const double decay = context.attributes().number("weight_decay");
    return make_kernel([=, chunks = cpu::UpdateChunks(context)](Stream&) {
      const LionConstants k{.scale = chunks.gradient_scale(),
                            .rate = chunks.learning_rate(),
                            .keep = static_cast<float>(1 - chunks.learning_rate() * decay),
                            .beta1 = static_cast<float>(beta1),
                            .rest1 = static_cast<float>(1 - beta1),
                            .beta2 = static_cast<float>(beta2),
                            .rest2 = static_cast<float>(1 - beta2)};
      chunks.run([=](const Stretch& at) { lion(at, k); });
    });
  };
}

}  // namespace fleet
