// relu6: y = min(max(x, 0), 6).
#include "ops/activation.h"

namespace fleet {

FLEET_OP(relu6) { define_activation(&def, "relu6_grad"); }

// dx = 0 < y < 6 ? dy : 0
FLEET_OP(relu6_grad) { define_activation_gradient(&def); }

}  // namespace fleet
