#include "backend/cuda/row_norm.h"

namespace fleet {
namespace {

cuda::NormRows layer_norm_rows(const Attributes& attributes, const Shape& x) {
  if (!attributes.has("begin_norm_axis")) return cuda::norm_rows_of(attributes, x);
  int64_t rows = 1;
  for (int d = 0; d < attributes.integer("begin_norm_axis"); ++d) rows *= x[d];
  return {rows, x.elements() / rows, static_cast<float>(attributes.number("epsilon"))};
}

// adds: x + residual is input 0 + input 1, and output 1; the other arguments move up by one.
template <bool adds>
void define_layer_norm(KernelDef& def) {
  def.dtypes = cuda::floating_types();
  def.create = [](KernelContext& context) {
    const Argument x = context.inputs[0], y = context.outputs[0];
    const cuda::NormRows extent = layer_norm_rows(context.attributes(), x.shape);
    const int moved = adds ? 1 : 0;
    const float* scale = context.inputs[moved + 1].as<const float>();
    const float* bias = context.inputs[moved + 2].as<const float>();
    float* mean = context.outputs[moved + 1].as<float>();
    float* variance = context.outputs[moved + 2].as<float>();
    const void* residual = adds ? context.inputs[1].data : nullptr;
    void* sum = adds ? context.outputs[1].data : nullptr;
    return cuda::dispatch(x.dtype, [&](auto type) {
      using T = decltype(type);
      return make_kernel([=](Stream& stream) {
        cuda::launch_norm<true>(cuda::stream_of(stream), extent, x.as<const T>(),
                                static_cast<const T*>(residual), static_cast<T*>(sum), scale, bias,
                                y.as<T>(), mean, variance);
      });
    });
  };
}

}  // namespace

FLEET_KERNEL(cuda, layer_norm) { define_layer_norm<false>(def); }
FLEET_KERNEL(cuda, add_layer_norm) { define_layer_norm<true>(def); }

FLEET_KERNEL(cuda, layer_norm_grad) {
  def.dtypes = cuda::floating_types();
  def.layouts = [](LayoutQuery& query) {
    query.workspace(cuda::norm_gradient_workspace(
        layer_norm_rows(query.attributes(), query.input_var(0).shape)));
  };
  def.create = [](KernelContext& context) {
    const Argument x = context.inputs[0], dx = context.outputs[0];
    float* dscale = context.outputs[1].as<float>();
    float* dbias = context.outputs[2].as<float>();
    float* partial = static_cast<float*>(context.workspace);
    return cuda::dispatch(x.dtype, [&](auto type) {
      using T = decltype(type);
      const cuda::RowNormBackward<true, T> backward{
          .extent = layer_norm_rows(context.attributes(), x.shape),
          .x = x.as<const T>(),
          .dy = context.inputs[4].as<const T>(),
          .dsum = context.inputs[5].as<const T>(),
          .scale = context.inputs[1].as<const float>(),
          .mean = context.inputs[2].as<const float>(),
          .variation = context.inputs[3].as<const float>()};
      return make_kernel([=](Stream& stream) {
        cuda::launch_norm_gradient(cuda::stream_of(stream), backward, dx.as<T>(), dscale, dbias,
                                   partial);
      });
    });
  };
}

}  // namespace fleet
