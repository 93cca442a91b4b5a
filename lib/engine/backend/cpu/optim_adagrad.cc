#include "backend/cpu/optim_rows.h"
#include "backend/cpu/optim_update.h"
#include "optim/adagrad_rule.h"

namespace fleet {

FLEET_KERNEL(cpu, adagrad) { cpu::define_update<AdagradRule<double>>(def); }
FLEET_KERNEL(cpu, adagrad_rows) { cpu::define_row_update<AdagradRule<double>>(def); }

}  // namespace fleet
