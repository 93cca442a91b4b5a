#include "backend/cpu/broadcast_loops.h"
#include "backend/cpu/simd_math.h"
#include "ops/activation_formulas.h"

namespace fleet {
namespace {

struct Identity {
  FLEET_INLINE float operator()(float t) const { return t; }
};

template <typename F>
struct ActivationOfSum {  // f(x + y)
  F f;
  FLEET_INLINE float operator()(float x, float y) const { return f(x + y); }
};
template <typename F>
struct OfY {  // x + f(y)
  F f;
  FLEET_INLINE float operator()(float x, float y) const { return x + f(y); }
};

// Where: ActivationOfSum or OfY.
template <template <typename> typename Where>
std::unique_ptr<Kernel> add_kernel_with(KernelContext& context, const std::string& activation) {
  const Attributes& attributes = context.attributes();
  if (activation == "relu") return cpu::broadcast_kernel(context, Where<Relu>{});
  if (activation == "tanh") return cpu::broadcast_kernel(context, Where<Tanh<cpu::SimdMath>>{});
  FLEET_CHECK(activation == "scale", "elementwise_add of " + activation);
  return cpu::broadcast_kernel(context, Where<Scale>{Scale(attributes)});
}

bool has_relu(const KernelContext& context) {
  return !context.attributes().text("activation").empty();
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
  def.layouts = [](LayoutQuery& query) {
    if (query.input_var(0).shape != query.input_var(1).shape) return;
    same_layout(query, /*keeps_zeros=*/query.attributes().number("bias") == 0);
  };
  def.create = [](KernelContext& context) {
    const std::string &behind = context.attributes().text("activation"),
                      &of_y = context.attributes().text("y_activation");
    if (!behind.empty()) return add_kernel_with<ActivationOfSum>(context, behind);
    if (!of_y.empty()) return add_kernel_with<OfY>(context, of_y);
    return cpu::broadcast_kernel(context, ActivationOfSum<Identity>{});
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
