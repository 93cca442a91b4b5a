#include <cmath>

#include "backend/cpu/optim_update.h"

namespace fleet {
namespace {

using Stretch = cpu::UpdateChunks::Stretch;

// As torch.lerp: exact at both ends.
FLEET_SIMD void follow(const Stretch& at, float rate) {
  float* average = at.parameter;
  const float* value = at.gradient;
#pragma omp simd
  for (int64_t i = 0; i < at.count; ++i) average[i] += rate * (value[i] - average[i]);
}

FLEET_SIMD void follow_closely(const Stretch& at, float rest) {
  float* average = at.parameter;
  const float* value = at.gradient;
#pragma omp simd
  for (int64_t i = 0; i < at.count; ++i) average[i] = value[i] - (value[i] - average[i]) * rest;
}

}  // namespace

FLEET_KERNEL(cpu, ema) {
  def.layouts = cpu::update_layouts;
  def.create = [](KernelContext& context) {
    return make_kernel([chunks = cpu::UpdateChunks(context)](Stream&) {
      const float rate = chunks.learning_rate();
      chunks.run([=](const Stretch& at) {
        rate < 0.5f ? follow(at, rate) : follow_closely(at, 1 - rate);
      });
    });
  };
}

FLEET_KERNEL(cpu, ema_rate) {
  def.create = [](KernelContext& context) {
    const Attributes& attributes = context.attributes();
    const double decay = attributes.number("decay"), gamma = attributes.number("gamma");
    const double power = attributes.boolean("warmup") ? attributes.number("power") : 0;
    const int64_t* updates = context.inputs[0].as<int64_t>();
    float* rate = context.outputs[0].as<float>();
    int32_t* begun = context.outputs[1].as<int32_t>();
    return make_kernel([=](Stream&) {
      const double before = static_cast<double>(*updates - 1);
      double kept = decay;
      if (power > 0) kept = std::fmin(decay, 1 - std::pow(1 + before / gamma, -power));
      *begun = *updates > 0;
      *rate = *updates > 1 ? static_cast<float>(1 - kept) : 1.0f;
    });
  };
}

}  // namespace fleet
