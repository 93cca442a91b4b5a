// swiglu (Shazeer, 2020): y = silu(x[..., :F]) * x[..., F:] for x [..., 2F].
#include "ops/gated_activation.h"

namespace fleet {

FLEET_OP(swiglu) {
  def.help = "silu(x[..., :F]) x[..., F:], for the halves of the last dimension 2F";
  define_gated(def, "swiglu_grad");
}

FLEET_OP(swiglu_grad) { define_gated_gradient(def); }

}  // namespace fleet
