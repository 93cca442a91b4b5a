#include "backend/cpu/elementwise.h"
#include "ops/activation_formulas.h"

namespace fleet {

FLEET_KERNEL(cpu, relu) { cpu::define_unary<Relu>(def); }
FLEET_KERNEL(cpu, relu_grad) { cpu::define_binary<ReluGrad>(def); }

}  // namespace fleet
