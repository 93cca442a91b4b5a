#include "backend/cpu/gated.h"

namespace fleet {

FLEET_KERNEL(cpu, geglu) {
  def.dtypes = cpu::kLoopTypes;
  def.create = [](KernelContext& context) {
    return context.attributes().boolean("approximate")
               ? cpu::gated_kernel(context, GeluTanh<cpu::SimdMath>())
               : cpu::gated_kernel(context, Gelu<cpu::SimdMath>());
  };
}

FLEET_KERNEL(cpu, geglu_grad) {
  def.dtypes = cpu::kLoopTypes;
  def.create = [](KernelContext& context) {
    return context.attributes().boolean("approximate")
               ? cpu::gated_gradient_kernel(context, GeluTanh<cpu::SimdMath>(),
                                            GeluTanhGrad<cpu::SimdMath>())
               : cpu::gated_gradient_kernel(context, Gelu<cpu::SimdMath>(),
                                            GeluGrad<cpu::SimdMath>());
  };
}

}  // namespace fleet
