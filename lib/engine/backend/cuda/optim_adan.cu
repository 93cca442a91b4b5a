#include "backend/cuda/optim_update.h"
#include "optim/adan_rule.h"

namespace fleet {

FLEET_KERNEL(cuda, adan) { cuda::define_update<AdanRule<float>>(def); }

}  // namespace fleet
