#include "backend/cuda/elementwise.h"
#include "ops/activation_formulas.h"

namespace fleet {

FLEET_KERNEL(cuda, relu6) { cuda::define_unary<Relu6>(def); }
FLEET_KERNEL(cuda, relu6_grad) { cuda::define_binary<Relu6Grad>(def); }

}  // namespace fleet
