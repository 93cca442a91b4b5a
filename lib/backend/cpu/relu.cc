#include "exec/kernel.h"

namespace fleet {
namespace {

void keep_layout(LayoutQuery& query) { same_layout(query, /*keeps_zeros=*/true); }

}  // namespace

FLEET_KERNEL(cpu, relu) {
  def.layouts = keep_layout;
  def.create = [](KernelContext& context) {
    const float* x = context.inputs[0].as<float>();
    float* y = context.outputs[0].as<float>();
    const int64_t count = context.outputs[0].layout.elements();
    return make_kernel([=](Stream&) {
#pragma omp parallel for simd
      for (int64_t i = 0; i < count; ++i) y[i] = x[i] > 0 ? x[i] : 0;
    });
  };
}

FLEET_KERNEL(cpu, relu_grad) {
  def.layouts = keep_layout;
  def.create = [](KernelContext& context) {
    const float* y = context.inputs[0].as<float>();
    const float* dy = context.inputs[1].as<float>();
    float* dx = context.outputs[0].as<float>();
    const int64_t count = context.outputs[0].layout.elements();
    return make_kernel([=](Stream&) {
#pragma omp parallel for simd
      for (int64_t i = 0; i < count; ++i) dx[i] = y[i] > 0 ? dy[i] : 0;
    });
  };
}

}  // namespace fleet
