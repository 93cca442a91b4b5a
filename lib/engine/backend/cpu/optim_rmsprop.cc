#include "backend/cpu/optim_update.h"
#include "optim/rmsprop_rule.h"

namespace fleet {

FLEET_KERNEL(cpu, rmsprop) { cpu::define_update<RmspropRule<false, false>>(def); }
FLEET_KERNEL(cpu, rmsprop_momentum) { cpu::define_update<RmspropRule<false, true>>(def); }
FLEET_KERNEL(cpu, rmsprop_centered) { cpu::define_update<RmspropRule<true, false>>(def); }
FLEET_KERNEL(cpu, rmsprop_centered_momentum) { cpu::define_update<RmspropRule<true, true>>(def); }

}  // namespace fleet
