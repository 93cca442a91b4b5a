#include "backend/cpu/optim_update.h"

namespace fleet {
namespace {

using Stretch = cpu::UpdateChunks::Stretch;

FLEET_SIMD void sgd(const Stretch& at, float scale, float rate, float decay) {
  float* parameter = at.parameter;
  const float* gradient = at.gradient;
#pragma omp simd
  for (int64_t i = 0; i < at.count; ++i) {
    parameter[i] -= rate * (gradient[i] * scale + decay * parameter[i]);
  }
}

}  // namespace

FLEET_KERNEL(cpu, sgd) {
  def.layouts = cpu::update_layouts;
  def.create = [](KernelContext& context) {
    const float decay = static_cast<float>(context.attributes().number("weight_decay"));
    return make_kernel([chunks = cpu::UpdateChunks(context), decay](Stream&) {
      const float scale = chunks.gradient_scale(), rate = chunks.learning_rate();
      chunks.run([=](const Stretch& at) { sgd(at, scale, rate, decay); });
    });
  };
}

}  // namespace fleet
