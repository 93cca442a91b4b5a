#include "backend/cuda/spread.h"
#include "ops/shape_attribute.h"

namespace fleet {
namespace {

struct Add {
  __device__ float operator()(float x, float y) const { return x + y; }
};

struct AddRelu {
  __device__ float operator()(float x, float y) const { return x + y > 0 ? x + y : 0; }
};

// What an element of dout gives to dx and dy. out: where relu passed something on; may be null, as
// may dx.
template <typename T>
struct AddGrad {
  const T *dout, *out;
  T* dx;
  __device__ float operator()(int64_t i, int64_t) const {
    const float slope = cuda::to_float(dout[i]);
    const float value = !out || cuda::to_float(out[i]) > 0 ? slope : 0;
    if (dx) dx[i] = cuda::from_float<T>(value);
    return value;
  }
};

bool has_relu(const Attributes& attributes) {
  const std::string& activation = attributes.text("activation");
  FLEET_CHECK(activation.empty() || activation == "relu", "elementwise_add of " + activation);
  return !activation.empty();
}

std::unique_ptr<Kernel> make_grad(KernelContext& context) {
  const Argument dout = context.inputs[0], out = context.inputs[1];
  const Argument dx = context.outputs[0], dy = context.outputs[1];
  const cuda::Spread spread =
      cuda::spread_of(context, to_shape(context.attributes().integers("y_shape")));
  const bool masked = has_relu(context.attributes());
  float* partial = static_cast<float*>(context.workspace);
  return cuda::dispatch(dout.dtype, [&](auto type) {
    using T = decltype(type);
    const AddGrad<T> value{dout.as<const T>(), masked ? out.as<const T>() : nullptr, dx.as<T>()};
    return make_kernel([=](Stream& stream) {
      cuda::sum_spread(cuda::stream_of(stream), spread, value, partial, dy.as<T>());
    });
  });
}

}  // namespace

FLEET_KERNEL(cuda, elementwise_add) {
  def.dtypes = cuda::floating_types();
  def.layouts = [](LayoutQuery& query) { cuda::spread_layouts(query, query.input_var(1).shape); };
  def.create = [](KernelContext& context) {
    return has_relu(context.attributes()) ? cuda::spread_kernel(context, AddRelu())
                                          : cuda::spread_kernel(context, Add());
  };
}

FLEET_KERNEL(cuda, elementwise_add_grad) {
  def.dtypes = cuda::floating_types();
  def.layouts = [](LayoutQuery& query) {
    const Shape y = to_shape(query.attributes().integers("y_shape"));
    cuda::spread_layouts(query, y);
    query.workspace(cuda::spread_workspace(*cuda::spread_over(
        query.input_var(0).shape, query.needed(0), y, query.attributes().integer("axis"))));
  };
  def.create = make_grad;
}

}  // namespace fleet
