#include "backend/cpu/elementwise.h"
#include "ops/activation_formulas.h"

namespace fleet {

FLEET_KERNEL(cpu, hardsigmoid) { cpu::define_unary<HardSigmoid>(def, /*keeps_zeros=*/false); }
FLEET_KERNEL(cpu, hardsigmoid_grad) { cpu::define_binary<HardSigmoidGrad>(def); }

}  // namespace fleet
