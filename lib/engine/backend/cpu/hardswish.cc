#include "backend/cpu/elementwise.h"
#include "ops/activation_formulas.h"

namespace fleet {

FLEET_KERNEL(cpu, hardswish) { cpu::define_unary<HardSwish>(def); }
FLEET_KERNEL(cpu, hardswish_grad) { cpu::define_binary<HardSwishGrad>(def); }

}  // namespace fleet
