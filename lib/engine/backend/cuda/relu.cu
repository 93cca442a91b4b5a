#include "backend/cuda/elementwise.h"
#include "ops/activation_formulas.h"

namespace fleet {

FLEET_KERNEL(cuda, relu) { cuda::define_unary<Relu>(def); }
FLEET_KERNEL(cuda, relu_grad) { cuda::define_binary<ReluGrad>(def); }

}  // namespace fleet
