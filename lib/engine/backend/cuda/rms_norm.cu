#include "backend/cuda/row_norm.h"

namespace fleet {
namespace {

// adds: x + residual is input 0 + input 1, and output 1; the other arguments move up by one.
template <bool adds>
void define_rms_norm(KernelDef& def) {
  def.dtypes = cuda::floating_types();
  def.create = [](KernelContext& context) {
    const Argument x = context.inputs[0], y = context.outputs[0];
    const cuda::NormRows extent = cuda::norm_rows_of(context.attributes(), x.shape);
    const float* scale = context.inputs[adds ? 2 : 1].as<const float>();
    float* saved_rstd = context.outputs[adds ? 2 : 1].as<float>();
    const void* residual = adds ? context.inputs[1].data : nullptr;
    void* sum = adds ? context.outputs[1].data : nullptr;
    return cuda::dispatch(x.dtype, [&](auto type) {
      using T = decltype(type);
      return make_kernel([=](Stream& stream) {
        cuda::launch_norm<false>(cuda::stream_of(stream), extent, x.as<const T>(),
                                 static_cast<const T*>(residual), static_cast<T*>(sum), scale,
                                 nullptr, y.as<T>(), nullptr, saved_rstd);
      });
    });
  };
}

cuda::NormRows rms_norm_rows(const Shape& x, const Shape& scale) {
  return {x.elements() / scale.elements(), scale.elements(), 0};
}

}  // namespace

FLEET_KERNEL(cuda, rms_norm) { define_rms_norm<false>(def); }
FLEET_KERNEL(cuda, add_rms_norm) { define_rms_norm<true>(def); }

FLEET_KERNEL(cuda, rms_norm_grad) {
  def.dtypes = cuda::floating_types();
  def.layouts = [](LayoutQuery& query) {
    query.workspace(cuda::norm_gradient_workspace(
        rms_norm_rows(query.input_var(0).shape, query.input_var(1).shape)));
  };
  def.create = [](KernelContext& context) {
    const Argument x = context.inputs[0], dx = context.outputs[0];
    float* dscale = context.outputs[1].as<float>();
    float* partial = static_cast<float*>(context.workspace);
    return cuda::dispatch(x.dtype, [&](auto type) {
      using T = decltype(type);
      const cuda::RowNormBackward<false, T> backward{
          .extent = rms_norm_rows(x.shape, context.inputs[1].shape),
          .x = x.as<const T>(),
          .dy = context.inputs[3].as<const T>(),
          .dsum = context.inputs[4].as<const T>(),
          .scale = context.inputs[1].as<const float>(),
          .mean = nullptr,
          .variation = context.inputs[2].as<const float>()};
      return make_kernel([=](Stream& stream) {
        cuda::launch_norm_gradient(cuda::stream_of(stream), backward, dx.as<T>(), dscale,
                                   static_cast<float*>(nullptr), partial);
      });
    });
  };
}

}  // namespace fleet
