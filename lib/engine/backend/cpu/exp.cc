#include "backend/cpu/simd_math.h"
#include "ops/activation_formulas.h"

namespace fleet {

FLEET_KERNEL(cpu, exp) { cpu::define_unary<Exp<cpu::SimdMath>>(def, /*keeps_zeros=*/false); }
FLEET_KERNEL(cpu, exp_grad) { cpu::define_binary<ExpGrad>(def); }

}  // namespace fleet
