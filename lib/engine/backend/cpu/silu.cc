#include "backend/cpu/simd_math.h"
#include "ops/activation_formulas.h"

namespace fleet {

FLEET_KERNEL(cpu, silu) { cpu::define_unary<Silu<cpu::SimdMath>>(def); }
FLEET_KERNEL(cpu, silu_grad) { cpu::define_binary<SiluGrad<cpu::SimdMath>>(def); }

}  // namespace fleet
