#include "backend/cuda/optim_update.h"
#include "optim/adam_rule.h"

namespace fleet {

FLEET_KERNEL(cuda, adam) { cuda::define_update<AdamRule<float, false>>(def); }
FLEET_KERNEL(cuda, adam_amsgrad) { cuda::define_update<AdamRule<float, true>>(def); }

}  // namespace fleet
