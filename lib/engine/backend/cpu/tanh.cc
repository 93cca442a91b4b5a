#include "backend/cpu/simd_math.h"
#include "ops/activation_formulas.h"

namespace fleet {

FLEET_KERNEL(cpu, tanh) { cpu::define_unary<Tanh<cpu::SimdMath>>(def); }
FLEET_KERNEL(cpu, tanh_grad) { cpu::define_binary<TanhGrad>(def); }

}  // namespace fleet
