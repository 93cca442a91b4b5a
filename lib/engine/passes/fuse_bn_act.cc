// fuse_bn_act: fuses the activation that follows a batch normalization into it.
#include "passes/fuse_activation.h"
#include "passes/pass.h"

namespace fleet {
namespace {

class FuseBnAct : public Pass {
 public:
  bool run(Program& program, const PassContext&) override {
    const int fused = fuse_activations(program, "batch_norm");
    add_masks(program);
    if (fused) log_fused("fuse_bn_act", count_fused(program, "batch_norm"));
    return fused > 0;
  }

 private:
  // Adds the mask that the gradient of a fused activation needs.
  static void add_masks(Program& program) {
    for (Op& op : program.ops()) {
      if (op.type() != "batch_norm" || op.attributes.text("activation") != "relu") continue;
      if (op.outputs[kMask] != kNoVar || !needs_mask(program, op)) continue;
      std::vector<VarId> outputs = op.outputs;
      outputs[kMask] = program.temporary(program.var(outputs[0]).name + ".mask");
      op = program.make_op(op.section, op.type(), op.inputs, outputs, op.attributes);
    }
  }
  static constexpr int kMask = 5;
};

}  // namespace

FLEET_PASS(fuse_bn_act) {
  def.help = "batch normalization computes the activation that follows it";
  def.create = create_pass<FuseBnAct>;
}

}  // namespace fleet
