#include "backend/cpu/simd_math.h"
#include "ops/activation_formulas.h"

namespace fleet {

FLEET_KERNEL(cpu, gelu) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = cpu::keep_layout;
  def.create = [](KernelContext& context) {
    return context.attributes().boolean("approximate")
               ? cpu::unary_kernel(context, GeluTanh<cpu::SimdMath>())
               : cpu::unary_kernel(context, Gelu<cpu::SimdMath>());
  };
}

FLEET_KERNEL(cpu, gelu_grad) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = cpu::keep_layout;
  def.create = [](KernelContext& context) {
    return context.attributes().boolean("approximate")
               ? cpu::binary_kernel(context, GeluTanhGrad<cpu::SimdMath>())
               : cpu::binary_kernel(context, GeluGrad<cpu::SimdMath>());
  };
}

}  // namespace fleet
