// tanh: y = tanh(x).
#include "ops/activation.h"

namespace fleet {

FLEET_OP(tanh) { define_activation(&def, "tanh_grad"); }

// dx = dy * (1 - y^2)
FLEET_OP(tanh_grad) { define_activation_gradient(&def); }

}  // namespace fleet
