// geglu (Shazeer, 2020): y = gelu(x[..., :F]) * x[..., F:] for x [..., 2F]; approximate selects
// gelu's form with tanh, as in gelu.
#include "ops/gated_activation.h"

namespace fleet {

FLEET_OP(geglu) {
  def.help =
      "gelu(x[..., :F]) x[..., F:], for the halves of the last dimension 2F; approximate selects "
      "gelu's form with tanh";
  def.attributes = {{"approximate", false}};
  define_gated(def, "geglu_grad");
}

FLEET_OP(geglu_grad) {
  def.attributes = {{"approximate", false}};
  define_gated_gradient(def);
}

}  // namespace fleet
