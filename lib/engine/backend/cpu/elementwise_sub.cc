#include "backend/cpu/broadcast_loops.h"

namespace fleet {
namespace {

template <typename T>
FLEET_SIMD void subtract(const T* x, const T* y, T* out, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) out[i] = x[i] - y[i];
}

template <typename T>
FLEET_SIMD void negate(const T* x, T* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] = -x[i];
}

Broadcast broadcast_of_grad(const Attributes& attributes, const Shape& dout) {
  const Shape y(std::span<const int64_t>(attributes.integers("y_shape")));
  return *broadcast_of(dout, y, attributes.integer("axis"));
}

}  // namespace

FLEET_KERNEL(cpu, elementwise_sub) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = [](LayoutQuery& query) { cpu::broadcast_layouts(query, 0, 1); };
  def.create = [](KernelContext& context) {
    const Broadcast b =
        cpu::broadcast_of_op(context, context.inputs[0].shape, context.inputs[1].shape);
    if (b.same()) return cpu::binary_kernel<subtract<float>, subtract<BFloat16>>(context);
    return cpu::broadcast_kernel(context, b, [](float x, float y) { return x - y; });
  };
}

FLEET_KERNEL(cpu, elementwise_sub_grad) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = [](LayoutQuery& query) {
    if (query.input_var(0).shape == query.output_var(0).shape) return cpu::keep_layout(query);
    query.workspace(
        cpu::reduce_workspace(broadcast_of_grad(query.attributes(), query.input_var(0).shape)));
  };
  def.create = [](KernelContext& context) {
    const Broadcast b = broadcast_of_grad(context.attributes(), context.inputs[0].shape);
    if (b.same()) return cpu::unary_kernel<negate<float>, negate<BFloat16>>(context);
    float* partial = static_cast<float*>(context.workspace);
    return cpu::with_loop_type(context.inputs[0].dtype, [&]<typename T>(T) {
      const T* dout = context.inputs[0].as<T>();
      T* dy = context.outputs[0].as<T>();
      return make_kernel([=](Stream&) {
        cpu::broadcast_reduce(b, partial, dy, [=](int64_t i, int64_t) { return -dout[i]; });
      });
    });
  };
}

}  // namespace fleet
