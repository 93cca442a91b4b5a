#include "backend/cpu/optim_update.h"
#include "optim/nadam_rule.h"

namespace fleet {

FLEET_KERNEL(cpu, nadam) { cpu::define_update<NadamRule<double>>(def); }

}  // namespace fleet
