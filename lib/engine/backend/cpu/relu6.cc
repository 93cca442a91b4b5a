#include "backend/cpu/elementwise.h"
#include "ops/activation_formulas.h"

namespace fleet {

FLEET_KERNEL(cpu, relu6) { cpu::define_unary<Relu6>(def); }
FLEET_KERNEL(cpu, relu6_grad) { cpu::define_binary<Relu6Grad>(def); }

}  // namespace fleet
