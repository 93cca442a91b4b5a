#include "backend/cpu/optim_update.h"
#include "optim/adan_rule.h"

namespace fleet {

FLEET_KERNEL(cpu, adan) { cpu::define_update<AdanRule<double>>(def); }

}  // namespace fleet
