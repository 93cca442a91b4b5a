#include "backend/cpu/broadcast_loops.h"

namespace fleet {
namespace {

struct Subtract {
  FLEET_INLINE float operator()(float x, float y) const { return x - y; }
};

struct Negate {
  FLEET_INLINE float operator()(float x) const { return -x; }
};

Broadcast broadcast_of_grad(const Attributes& attributes, const Shape& dout) {
  const Shape y(std::span<const int64_t>(attributes.integers("y_shape")));
  return *broadcast_of(dout, y, attributes.integer("axis"));
}

}  // namespace

FLEET_KERNEL(cpu, elementwise_sub) { cpu::define_broadcast<Subtract>(def); }

FLEET_KERNEL(cpu, elementwise_sub_grad) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = [](LayoutQuery& query) {
    if (query.input_var(0).shape == query.output_var(0).shape) return cpu::keep_layout(query);
    query.workspace(
        cpu::reduce_workspace(broadcast_of_grad(query.attributes(), query.input_var(0).shape)));
  };
  def.create = [](KernelContext& context) {
    const Broadcast b = broadcast_of_grad(context.attributes(), context.inputs[0].shape);
    if (b.same()) return cpu::unary_kernel(context, Negate());
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
