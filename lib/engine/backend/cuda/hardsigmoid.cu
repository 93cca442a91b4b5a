#include "backend/cuda/elementwise.h"
#include "ops/activation_formulas.h"

namespace fleet {

FLEET_KERNEL(cuda, hardsigmoid) { cuda::define_unary<HardSigmoid>(def, /*keeps_zeros=*/false); }
FLEET_KERNEL(cuda, hardsigmoid_grad) { cuda::define_binary<HardSigmoidGrad>(def); }

}  // namespace fleet
