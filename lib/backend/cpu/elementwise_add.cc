#include "backend/cpu/broadcast_loops.h"

namespace fleet {
namespace {

template <typename T>
FLEET_SIMD void add(const T* x, const T* y, T* out, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) out[i] = x[i] + y[i];
}

template <typename T>
FLEET_SIMD void add_relu(const T* x, const T* y, T* out, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float sum = x[i] + y[i];
    out[i] = sum > 0 ? sum : 0;
  }
}

bool has_relu(const KernelContext& context) {
  const std::string& activation = context.attributes().text("activation");
  FLEET_CHECK(activation.empty() || activation == "relu", "elementwise_add of " + activation);
  return !activation.empty();
}

// dy and, with relu, dx in one pass over memory.
template <typename T>
std::unique_ptr<Kernel> spread_add_grad(KernelContext& context) {
  const T* dout = context.inputs[0].as<T>();
  const T* out = context.inputs[1].as<T>();
  T* dx = context.outputs[0].as<T>();
  T* dy = context.outputs[1].as<T>();
  float* partial = static_cast<float*>(context.workspace);
  const std::vector<int64_t>& dims = context.attributes().integers("y_shape");
  const Broadcast b =
      cpu::broadcast_of_op(context, context.inputs[0].shape, Shape(std::span<const int64_t>(dims)));
  const bool masked = has_relu(context);
  if (!dy) {
    return make_kernel([=](Stream&) {
      cpu::broadcast_for_each(b, [=](int64_t i, int64_t) {
        const float gradient = dout[i];
        dx[i] = masked ? cpu::where_positive(out[i], gradient) : gradient;
      });
    });
  }
  if (!masked) {
    return make_kernel([=](Stream&) {
      cpu::broadcast_reduce(b, partial, dy, [=](int64_t i, int64_t) {
        const float gradient = dout[i];
        if (dx) dx[i] = gradient;
        return gradient;
      });
    });
  }
  if (!dx) {
    return make_kernel([=](Stream&) {
      cpu::broadcast_reduce(
          b, partial, dy, [=](int64_t i, int64_t) { return cpu::where_positive(out[i], dout[i]); });
    });
  }
  return make_kernel([=](Stream&) {
    cpu::broadcast_reduce(b, partial, dy, [=](int64_t i, int64_t) {
      const float value = cpu::where_positive(out[i], dout[i]);
      dx[i] = value;
      return value;
    });
  });
}

}  // namespace

FLEET_KERNEL(cpu, elementwise_add) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = [](LayoutQuery& query) { cpu::broadcast_layouts(query, 0, 1); };
  def.create = [](KernelContext& context) {
    const Broadcast b =
        cpu::broadcast_of_op(context, context.inputs[0].shape, context.inputs[1].shape);
    if (has_relu(context)) {
      if (b.same()) return cpu::binary_kernel<add_relu<float>, add_relu<BFloat16>>(context);
      return cpu::spread_kernel(context, b, [](float x, float y) { return std::max(x + y, 0.0f); });
    }
    if (b.same()) return cpu::binary_kernel<add<float>, add<BFloat16>>(context);
    return cpu::spread_kernel(context, b, [](float x, float y) { return x + y; });
  };
}

FLEET_KERNEL(cpu, elementwise_add_grad) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = [](LayoutQuery& query) {
    const Shape y(std::span<const int64_t>(query.attributes().integers("y_shape")));
    const auto b = broadcast_of(query.input_var(0).shape, y, query.attributes().integer("axis"));
    query.workspace(cpu::reduce_workspace(*b));
  };
  def.create = [](KernelContext& context) {
    return cpu::with_loop_type(context.inputs[0].dtype,
                               [&]<typename T>(T) { return spread_add_grad<T>(context); });
  };
}

}  // namespace fleet
