// fuse_bn_add_act: fuses a batch normalization, the addition that joins a residual block, and its
// relu into one operation. Runs after fuse_elewise_add_act (which fuses the addition and the relu)
// and before the backward pass.
#include "passes/fuse_activation.h"
#include "passes/pass.h"
#include "passes/uses.h"

namespace fleet {
namespace {

class FuseBnAddAct : public Pass {
 public:
  bool run(Program& program, const PassContext&) override {
    FLEET_CHECK(program.find_section("backward") < 0, "fuse_bn_add_act after the backward pass");
    const Uses uses(program);
    std::vector<Op>& ops = program.ops();
    std::vector<bool> removed(ops.size(), false);
    int fused = 0;
    for (Op& op : ops) {
      const int norm = norm_of(program, uses, op);
      if (norm < 0) continue;
      const VarId z = op.inputs[op.inputs[0] == ops[norm].outputs[0] ? 1 : 0];
      op = join(program, ops[norm], op, z);
      removed[norm] = true;
      ++fused;
    }
    if (!fused) return false;
    remove_ops(program, removed);
    log_fused("fuse_bn_add_act", count_fused(program, "fused_bn_add_activation"));
    return true;
  }

 private:
  // The index of the batch_norm that this addition can fuse; the later one of two; -1: none.
  static int norm_of(const Program& program, const Uses& uses, const Op& add) {
    if (add.type() != "elementwise_add" || add.attributes.text("activation") != "relu") return -1;
    if (!add.attributes.text("y_activation").empty()) return -1;
    if (program.var(add.inputs[0]).shape != program.var(add.inputs[1]).shape) return -1;
    int best = -1;
    for (VarId id : add.inputs) {
      const int writer = uses.writer(id);
      if (writer < 0 || uses.readers(id).size() != 1) continue;
      const Op& norm = program.ops()[writer];
      const bool fits = norm.type() == "batch_norm" && norm.section == add.section &&
                        norm.outputs[0] == id && norm.attributes.text("activation").empty();
      if (fits) best = std::max(best, writer);
    }
    return best;
  }

  static Op join(Program& program, const Op& norm, const Op& add, VarId z) {
    std::vector<VarId> inputs = norm.inputs, outputs = norm.outputs;
    inputs.push_back(z);
    outputs[0] = add.outputs[0];
    Attributes attributes = norm.attributes;
    attributes.set("activation", add.attributes.text("activation"));
    const Op fused =
        program.make_op(add.section, "fused_bn_add_activation", inputs, outputs, attributes);
    if (!needs_mask(program, fused)) return fused;
    outputs[5] = program.temporary(program.var(outputs[0]).name + ".mask");
    return program.make_op(add.section, "fused_bn_add_activation", inputs, outputs, attributes);
  }
};

}  // namespace

FLEET_PASS(fuse_bn_add_act) {
  def.help = "fuses a batch normalization, the addition after it and its relu";
  def.create = create_pass<FuseBnAddAct>;
}

}  // namespace fleet
