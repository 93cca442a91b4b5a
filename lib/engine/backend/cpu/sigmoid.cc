#include "backend/cpu/simd_math.h"
#include "ops/activation_formulas.h"

namespace fleet {

FLEET_KERNEL(cpu, sigmoid) {
  cpu::define_unary<Sigmoid<cpu::SimdMath>>(def, /*keeps_zeros=*/false);
}
FLEET_KERNEL(cpu, sigmoid_grad) { cpu::define_binary<SigmoidGrad>(def); }

}  // namespace fleet
