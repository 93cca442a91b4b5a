#include "backend/cpu/elementwise.h"

namespace fleet {
namespace {

struct Bounds {
  float min, max;
  explicit Bounds(const Attributes& attributes)
      : min(static_cast<float>(attributes.number("min"))),
        max(static_cast<float>(attributes.number("max"))) {}
};

FLEET_SIMD void clip(const float* x, float* y, int64_t count, Bounds bounds) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    y[i] = x[i] < bounds.min ? bounds.min : (x[i] > bounds.max ? bounds.max : x[i]);
  }
}

FLEET_SIMD void clip_grad(const float* x, const float* dy, float* dx, int64_t count,
                          Bounds bounds) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float gradient = dy[i];
    dx[i] = (x[i] >= bounds.min) & (x[i] <= bounds.max) ? gradient : 0;
  }
}

}  // namespace

FLEET_KERNEL(cpu, clip) {
  def.layouts = [](LayoutQuery& query) {
    const Bounds bounds(query.attributes());
    same_layout(query, /*keeps_zeros=*/bounds.min <= 0 && bounds.max >= 0);
  };
  def.create = [](KernelContext& context) {
    const float* x = context.inputs[0].as<float>();
    float* y = context.outputs[0].as<float>();
    const int64_t count = context.outputs[0].layout.elements();
    return make_kernel([=, bounds = Bounds(context.attributes())](Stream&) {
      cpu::parallel_ranges(count, [=](int64_t begin, int64_t end) {
        clip(x + begin, y + begin, end - begin, bounds);
      });
    });
  };
}

FLEET_KERNEL(cpu, clip_grad) {
  def.layouts = cpu::keep_layout;
  def.create = [](KernelContext& context) {
    const float* x = context.inputs[0].as<float>();
    const float* dy = context.inputs[1].as<float>();
    float* dx = context.outputs[0].as<float>();
    const int64_t count = context.outputs[0].layout.elements();
    return make_kernel([=, bounds = Bounds(context.attributes())](Stream&) {
      cpu::parallel_ranges(count, [=](int64_t begin, int64_t end) {
        clip_grad(x + begin, dy + begin, dx + begin, end - begin, bounds);
      });
    });
  };
}

}  // namespace fleet
