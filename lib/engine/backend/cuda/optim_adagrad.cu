#include "backend/cuda/optim_update.h"
#include "optim/adagrad_rule.h"

namespace fleet {

FLEET_KERNEL(cuda, adagrad) { cuda::define_update<AdagradRule<float>>(def); }

}  // namespace fleet
