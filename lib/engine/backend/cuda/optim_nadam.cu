#include "backend/cuda/optim_update.h"
#include "optim/nadam_rule.h"

namespace fleet {

FLEET_KERNEL(cuda, nadam) { cuda::define_update<NadamRule<float>>(def); }

}  // namespace fleet
