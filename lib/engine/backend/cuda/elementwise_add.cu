#include "backend/cuda/broadcast_loops.h"
#include "backend/cuda/elementwise.h"
#include "graph/op.h"
#include "ops/activation_formulas.h"

namespace fleet {
namespace {

struct Identity {
  __device__ float operator()(float t) const { return t; }
};

template <typename F>
struct ActivationOfSum {  // f(x + y)
  F f;
  __device__ float operator()(float x, float y) const { return f(x + y); }
};
template <typename F>
struct OfY {  // x + f(y)
  F f;
  __device__ float operator()(float x, float y) const { return x + f(y); }
};

// Where: ActivationOfSum or OfY.
template <template <typename> typename Where>
std::unique_ptr<Kernel> add_kernel_with(KernelContext& context, const std::string& activation) {
  const Attributes& attributes = context.attributes();
  if (activation == "relu") return cuda::broadcast_kernel(context, Where<Relu>{});
  if (activation == "tanh") return cuda::broadcast_kernel(context, Where<Tanh<cuda::DeviceMath>>{});
  FLEET_CHECK(activation == "scale", "elementwise_add of " + activation);
  return cuda::broadcast_kernel(context, Where<Scale>{Scale(attributes)});
}

// The contribution of an element of dout to dx and dy. out: the output of relu, which masks dout;
// may be null, and so may dx.
template <typename T>
struct AddGrad {
  const T *dout, *out;
  T* dx;
  __device__ float operator()(int64_t i, int64_t) const {
    const float slope = cuda::to_float(dout[i]);
    const float value = out && cuda::to_float(out[i]) <= 0 ? 0 : slope;
    if (dx) dx[i] = cuda::from_float<T>(value);
    return value;
  }
};

std::unique_ptr<Kernel> make_grad(KernelContext& context) {
  const Argument dout = context.inputs[0], out = context.inputs[1];
  const Argument dx = context.outputs[0], dy = context.outputs[1];
  const cuda::BroadcastLoop loop =
      cuda::broadcast_loop_of(context, to_shape(context.attributes().integers("y_shape")));
  const bool masked = !context.attributes().text("activation").empty();
  float* partial = static_cast<float*>(context.workspace);
  return cuda::dispatch(dout.dtype, [&](auto type) {
    using T = decltype(type);
    const AddGrad<T> value{dout.as<const T>(), masked ? out.as<const T>() : nullptr, dx.as<T>()};
    return make_kernel([=](Stream& stream) {
      cuda::sum_broadcast(cuda::stream_of(stream), loop, value, partial, dy.as<T>());
    });
  });
}

}  // namespace

FLEET_KERNEL(cuda, elementwise_add) {
  def.dtypes = cuda::floating_types();
  def.layouts = [](LayoutQuery& query) {
    const Shape& y = query.input_var(1).shape;
    if (query.attributes().number("bias") == 0) return cuda::broadcast_layouts(query, y);
    if (query.input_var(0).shape == y) cuda::keep_unpadded_layout(query);
  };
  def.create = [](KernelContext& context) {
    const std::string &behind = context.attributes().text("activation"),
                      &of_y = context.attributes().text("y_activation");
    if (!behind.empty()) return add_kernel_with<ActivationOfSum>(context, behind);
    if (!of_y.empty()) return add_kernel_with<OfY>(context, of_y);
    return cuda::broadcast_kernel(context, ActivationOfSum<Identity>{});
  };
}

FLEET_KERNEL(cuda, elementwise_add_grad) {
  def.dtypes = cuda::floating_types();
  def.layouts = [](LayoutQuery& query) {
    const Shape y = to_shape(query.attributes().integers("y_shape"));
    cuda::broadcast_layouts(query, y);
    query.workspace(cuda::broadcast_workspace(*cuda::broadcast_over(
        query.input_var(0).shape, query.needed(0), y, query.attributes().integer("axis"))));
  };
  def.create = make_grad;
}

}  // namespace fleet
