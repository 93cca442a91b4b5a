#include <cmath>

#include "backend/cpu/optim_update.h"

namespace fleet {
namespace {

using Stretch = cpu::UpdateChunks::Stretch;

struct AdagradConstants {
  float scale, rate, decay, epsilon;
};

FLEET_SIMD void adagrad(const Stretch& at, AdagradConstants k) {
  float *parameter = at.parameter, *sum = at.state(0);
  const float* gradient = at.gradient;
#pragma omp simd
  for (int64_t i = 0; i < at.count; ++i) {
    const float g = gradient[i] * k.scale + k.decay * parameter[i];
    const float s = sum[i] + g * g;
    sum[i] = s;
    parameter[i] -= k.rate * (g / (std::sqrt(s) + k.epsilon));
  }
}

}  // namespace

FLEET_KERNEL(cpu, adagrad) {
  def.layouts = cpu::update_layouts;
  def.create = [](KernelContext& context) {
    const Attributes& attributes = context.attributes();
    const int64_t* step = context.inputs[kUpdateOtherInputs].as<int64_t>();
    const double lr_decay = attributes.number("lr_decay");
    const float decay = static_cast<float>(attributes.number("weight_decay"));
    const float epsilon = static_cast<float>(attributes.number("epsilon"));
    return make_kernel([=, chunks = cpu::UpdateChunks(context)](Stream&) {
      const double rate = chunks.learning_rate() / (1 + static_cast<double>(*step - 1) * lr_decay);
      const AdagradConstants k{chunks.gradient_scale(), static_cast<float>(rate), decay, epsilon};
      chunks.run([=](const Stretch& at) { adagrad(at, k); });
    });
  };
}

}  // namespace fleet
