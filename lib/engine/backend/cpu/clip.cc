#include "backend/cpu/elementwise.h"

namespace fleet {
namespace {

struct Bounds {
  float min, max;
  explicit Bounds(const Attributes& attributes)
      : min(static_cast<float>(attributes.number("min"))),
        max(static_cast<float>(attributes.number("max"))) {}
};

template <typename T>
FLEET_SIMD void clip(const T* x, T* y, int64_t count, Bounds bounds) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float value = x[i];
    y[i] = value < bounds.min ? bounds.min : (value > bounds.max ? bounds.max : value);
  }
}

template <typename T>
FLEET_SIMD void clip_grad(const T* x, const T* dy, T* dx, int64_t count, Bounds bounds) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float gradient = dy[i];
    dx[i] = ((x[i] >= bounds.min) & (x[i] <= bounds.max)) ? gradient : 0;
  }
}

}  // namespace

FLEET_KERNEL(cpu, clip) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = [](LayoutQuery& query) {
    const Bounds bounds(query.attributes());
    same_layout(query, /*keeps_zeros=*/bounds.min <= 0 && bounds.max >= 0);
  };
  def.create = [](KernelContext& context) {
    const Bounds bounds(context.attributes());
    const int64_t count = context.outputs[0].layout.elements();
    return cpu::with_loop_type(context.inputs[0].dtype, [&]<typename T>(T) {
      const T* x = context.inputs[0].as<T>();
      T* y = context.outputs[0].as<T>();
      return make_kernel([=](Stream&) {
        cpu::parallel_ranges(count, [=](int64_t begin, int64_t end) {
          clip(x + begin, y + begin, end - begin, bounds);
        });
      });
    });
  };
}

FLEET_KERNEL(cpu, clip_grad) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = cpu::keep_layout;
  def.create = [](KernelContext& context) {
    const Bounds bounds(context.attributes());
    const int64_t count = context.outputs[0].layout.elements();
    return cpu::with_loop_type(context.inputs[0].dtype, [&]<typename T>(T) {
      const T* x = context.inputs[0].as<T>();
      const T* dy = context.inputs[1].as<T>();
      T* dx = context.outputs[0].as<T>();
      return make_kernel([=](Stream&) {
        cpu::parallel_ranges(count, [=](int64_t begin, int64_t end) {
          clip_grad(x + begin, dy + begin, dx + begin, end - begin, bounds);
        });
      });
    });
  };
}

}  // namespace fleet
