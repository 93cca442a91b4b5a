#include "backend/cpu/elementwise.h"

namespace fleet {
namespace {

template <typename T>
FLEET_SIMD void scale(const T* x, T* y, int64_t count, float factor, float bias) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] * factor + bias;
}

}  // namespace

FLEET_KERNEL(cpu, scale) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = [](LayoutQuery& query) {
    same_layout(query, /*keeps_zeros=*/query.attributes().number("bias") == 0);
  };
  def.create = [](KernelContext& context) {
    const float factor = static_cast<float>(context.attributes().number("scale"));
    const float bias = static_cast<float>(context.attributes().number("bias"));
    const int64_t count = context.outputs[0].layout.elements();
    return cpu::with_loop_type(context.inputs[0].dtype, [&]<typename T>(T) {
      const T* x = context.inputs[0].as<T>();
      T* y = context.outputs[0].as<T>();
      return make_kernel([=](Stream&) {
        cpu::parallel_ranges(count, [=](int64_t begin, int64_t end) {
          scale(x + begin, y + begin, end - begin, factor, bias);
        });
      });
    });
  };
}

}  // namespace fleet
