#include "backend/cuda/gated.h"

namespace fleet {

FLEET_KERNEL(cuda, geglu) {
  def.dtypes = cuda::floating_types();
  def.create = [](KernelContext& context) {
    return context.attributes().boolean("approximate")
               ? cuda::gated_kernel(context, GeluTanh<cuda::DeviceMath>())
               : cuda::gated_kernel(context, Gelu<cuda::DeviceMath>());
  };
}

FLEET_KERNEL(cuda, geglu_grad) {
  def.dtypes = cuda::floating_types();
  def.create = [](KernelContext& context) {
    return context.attributes().boolean("approximate")
               ? cuda::gated_gradient_kernel(context, GeluTanh<cuda::DeviceMath>(),
                                             GeluTanhGrad<cuda::DeviceMath>())
               : cuda::gated_gradient_kernel(context, Gelu<cuda::DeviceMath>(),
                                             GeluGrad<cuda::DeviceMath>());
  };
}

}  // namespace fleet
