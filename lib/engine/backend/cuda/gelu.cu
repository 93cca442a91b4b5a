#include "backend/cuda/elementwise.h"
#include "ops/activation_formulas.h"

namespace fleet {

FLEET_KERNEL(cuda, gelu) {
  def.dtypes = cuda::floating_types();
  def.layouts = cuda::keep_layout;
  def.create = [](KernelContext& context) {
    return context.attributes().boolean("approximate")
               ? cuda::unary_kernel(context, GeluTanh<cuda::DeviceMath>())
               : cuda::unary_kernel(context, Gelu<cuda::DeviceMath>());
  };
}

FLEET_KERNEL(cuda, gelu_grad) {
  def.dtypes = cuda::floating_types();
  def.layouts = cuda::keep_layout;
  def.create = [](KernelContext& context) {
    return context.attributes().boolean("approximate")
               ? cuda::binary_kernel(context, GeluTanhGrad<cuda::DeviceMath>())
               : cuda::binary_kernel(context, GeluGrad<cuda::DeviceMath>());
  };
}

}  // namespace fleet
