#include "backend/cuda/elementwise.h"
#include "ops/activation_formulas.h"

namespace fleet {

FLEET_KERNEL(cuda, hardswish) { cuda::define_unary<HardSwish>(def); }
FLEET_KERNEL(cuda, hardswish_grad) { cuda::define_binary<HardSwishGrad>(def); }

}  // namespace fleet
