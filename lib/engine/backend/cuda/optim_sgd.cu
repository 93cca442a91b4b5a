#include "backend/cuda/optim_rows.h"
#include "backend/cuda/optim_update.h"
#include "optim/sgd_rule.h"

namespace fleet {

FLEET_KERNEL(cuda, sgd) { cuda::define_update<SgdRule>(def); }
FLEET_KERNEL(cuda, sgd_rows) { cuda::define_row_update<SgdRule>(def); }

}  // namespace fleet
