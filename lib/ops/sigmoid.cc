// sigmoid: y = 1 / (1 + exp(-x)).
#include "ops/activation.h"

namespace fleet {

FLEET_OP(sigmoid) { define_activation(&def, "sigmoid_grad"); }

// dx = dy * y * (1 - y)
FLEET_OP(sigmoid_grad) { define_activation_gradient(&def); }

}  // namespace fleet
