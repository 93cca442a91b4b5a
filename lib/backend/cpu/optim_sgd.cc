#include "backend/cpu/elementwise.h"

namespace fleet {
namespace {

FLEET_SIMD void sgd(float* parameter, const float* gradient, int64_t count, float scale, float rate,
                    float decay) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    parameter[i] -= rate * (gradient[i] * scale + decay * parameter[i]);
  }
}

}  // namespace

FLEET_KERNEL(cpu, sgd) {
  def.layouts = cpu::keep_layout;
  def.create = [](KernelContext& context) {
    float* parameter = context.outputs[0].as<float>();
    const float* gradient = context.inputs[1].as<float>();
    const float* rate = context.inputs[2].as<float>();
    const float* scale = context.inputs[3].as<float>();
    const float decay = static_cast<float>(context.attributes().number("weight_decay"));
    const int64_t count = context.outputs[0].layout.elements();
    return make_kernel([=](Stream&) {
      cpu::parallel_ranges(count, [=](int64_t begin, int64_t end) {
        sgd(parameter + begin, gradient + begin, end - begin, scale ? *scale : 1, *rate, decay);
      });
    });
  };
}

}  // namespace fleet
