// fuse_bn_recomputed_act: fuses relu6, silu and hardswish into the batch normalization before them.
// The gradient computes the activation's input again from the input of the normalization, which it
// reads anyway: neither a mask nor the activation's input is stored. For backends that have these
// kernels. Runs before the backward pass, beside fuse_bn_act.
#include "passes/fuse_activation.h"
#include "passes/pass.h"

namespace fleet {
namespace {

class FuseBnRecomputedAct : public Pass {
 public:
  bool run(Program& program, const PassContext&) override {
    const int fused = fuse_recomputed_activations(program, "batch_norm");
    if (fused) log_fused("fuse_bn_recomputed_act", fused);
    return fused > 0;
  }
};

}  // namespace

FLEET_PASS(fuse_bn_recomputed_act) {
  def.help = "batch normalization computes the relu6, silu or hardswish that follows it";
  def.create = create_pass<FuseBnRecomputedAct>;
}

}  // namespace fleet
