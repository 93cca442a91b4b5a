#include "backend/cpu/optim_update.h"
#include "optim/lion_rule.h"

namespace fleet {

FLEET_KERNEL(cpu, lion) { cpu::define_update<LionRule<double>>(def); }

}  // namespace fleet
