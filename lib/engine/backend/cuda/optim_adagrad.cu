#include "backend/cuda/optim_rows.h"
#include "backend/cuda/optim_update.h"
#include "optim/adagrad_rule.h"

namespace fleet {

FLEET_KERNEL(cuda, adagrad) { cuda::define_update<AdagradRule<float>>(def); }
FLEET_KERNEL(cuda, adagrad_rows) { cuda::define_row_update<AdagradRule<float>>(def); }

}  // namespace fleet
