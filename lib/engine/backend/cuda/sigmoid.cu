#include "backend/cuda/elementwise.h"
#include "ops/activation_formulas.h"

namespace fleet {

FLEET_KERNEL(cuda, sigmoid) {
  cuda::define_unary<Sigmoid<cuda::DeviceMath>>(def, /*keeps_zeros=*/false);
}
FLEET_KERNEL(cuda, sigmoid_grad) { cuda::define_binary<SigmoidGrad>(def); }

}  // namespace fleet
