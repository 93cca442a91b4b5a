#include "backend/cuda/elementwise.h"
#include "ops/activation_formulas.h"

namespace fleet {

FLEET_KERNEL(cuda, tanh) { cuda::define_unary<Tanh<cuda::DeviceMath>>(def); }
FLEET_KERNEL(cuda, tanh_grad) { cuda::define_binary<TanhGrad>(def); }

}  // namespace fleet
