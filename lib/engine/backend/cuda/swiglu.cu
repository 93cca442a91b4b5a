#include "backend/cuda/gated.h"

namespace fleet {

FLEET_KERNEL(cuda, swiglu) {
  def.dtypes = cuda::floating_types();
  def.create = [](KernelContext& context) {
    return cuda::gated_kernel(context, Silu<cuda::DeviceMath>());
  };
}

FLEET_KERNEL(cuda, swiglu_grad) {
  def.dtypes = cuda::floating_types();
  def.create = [](KernelContext& context) {
    return cuda::gated_gradient_kernel(context, Silu<cuda::DeviceMath>(),
                                       SiluGrad<cuda::DeviceMath>());
  };
}

}  // namespace fleet
