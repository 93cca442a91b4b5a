#include "backend/cuda/elementwise.h"
#include "ops/activation_formulas.h"

namespace fleet {

FLEET_KERNEL(cuda, exp) { cuda::define_unary<Exp<cuda::DeviceMath>>(def, /*keeps_zeros=*/false); }
FLEET_KERNEL(cuda, exp_grad) { cuda::define_binary<ExpGrad>(def); }

}  // namespace fleet
