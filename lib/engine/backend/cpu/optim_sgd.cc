#include "backend/cpu/optim_rows.h"
#include "backend/cpu/optim_update.h"
#include "optim/sgd_rule.h"

namespace fleet {

FLEET_KERNEL(cpu, sgd) { cpu::define_update<SgdRule>(def); }
FLEET_KERNEL(cpu, sgd_rows) { cpu::define_row_update<SgdRule>(def); }

}  // namespace fleet
