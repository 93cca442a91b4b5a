#include "backend/cpu/gated.h"

namespace fleet {

FLEET_KERNEL(cpu, swiglu) {
  def.dtypes = cpu::kLoopTypes;
  def.create = [](KernelContext& context) {
    return cpu::gated_kernel(context, Silu<cpu::SimdMath>());
  };
}

FLEET_KERNEL(cpu, swiglu_grad) {
  def.dtypes = cpu::kLoopTypes;
  def.create = [](KernelContext& context) {
    return cpu::gated_gradient_kernel(context, Silu<cpu::SimdMath>(), SiluGrad<cpu::SimdMath>());
  };
}

}  // namespace fleet
