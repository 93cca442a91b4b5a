// relu: y = max(x, 0).
#include "ops/activation.h"

namespace fleet {

FLEET_OP(relu) { define_activation(&def, "relu_grad"); }

// dx = y > 0 ? dy : 0
FLEET_OP(relu_grad) { define_activation_gradient(&def); }

}  // namespace fleet
