#include "backend/cuda/optim_update.h"
#include "optim/rmsprop_rule.h"

namespace fleet {

FLEET_KERNEL(cuda, rmsprop) { cuda::define_update<RmspropRule<false, false>>(def); }
FLEET_KERNEL(cuda, rmsprop_momentum) { cuda::define_update<RmspropRule<false, true>>(def); }
FLEET_KERNEL(cuda, rmsprop_centered) { cuda::define_update<RmspropRule<true, false>>(def); }
FLEET_KERNEL(cuda, rmsprop_centered_momentum) { cuda::define_update<RmspropRule<true, true>>(def); }

}  // namespace fleet
