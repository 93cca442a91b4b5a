#include "backend/cpu/optim_update.h"
#include "optim/adam_rule.h"

namespace fleet {

FLEET_KERNEL(cpu, adam) { cpu::define_update<AdamRule<double, false>>(def); }
FLEET_KERNEL(cpu, adam_amsgrad) { cpu::define_update<AdamRule<double, true>>(def); }

}  // namespace fleet
