#include "backend/cuda/optim_update.h"
#include "optim/sgd_rule.h"

namespace fleet {

FLEET_KERNEL(cuda, sgd) { cuda::define_update<SgdRule>(def); }

}  // namespace fleet
