#include "backend/cuda/optim_update.h"
#include "optim/lion_rule.h"

namespace fleet {

FLEET_KERNEL(cuda, lion) { cuda::define_update<LionRule<float>>(def); }

}  // namespace fleet
