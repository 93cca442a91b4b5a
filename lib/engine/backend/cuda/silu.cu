#include "backend/cuda/elementwise.h"
#include "ops/activation_formulas.h"

namespace fleet {

FLEET_KERNEL(cuda, silu) { cuda::define_unary<Silu<cuda::DeviceMath>>(def); }
FLEET_KERNEL(cuda, silu_grad) { cuda::define_binary<SiluGrad<cuda::DeviceMath>>(def); }

}  // namespace fleet
