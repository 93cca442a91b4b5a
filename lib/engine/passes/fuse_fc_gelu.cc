// fuse_fc_gelu: an fc and the gelu (form with tanh) that reads its result become one operation, as
// do the data gradient of the fc behind it and the gradient of that gelu (ops/fc_gelu.cc). Runs
// after the backward pass. Not in a pipeline, whose stage may begin between the two.
#include <algorithm>

#include "passes/fuse_activation.h"
#include "passes/pass.h"
#include "passes/uses.h"

namespace fleet {
namespace {

class FuseFcGelu : public Pass {
 public:
  bool run(Program& program, const PassContext& context) override {
    if (context.stages > 1) return false;
    const Uses uses(program);
    std::vector<Op>& ops = program.ops();
    std::vector<bool> removed(ops.size(), false);
    int changed = 0;
    for (size_t i = 0; i < ops.size(); ++i) {
      const Op gelu = ops[i];
      const bool forward = gelu.type() == "gelu";
      if (!forward && gelu.type() != "gelu_grad") continue;
      const VarId between = gelu.inputs[forward ? 0 : 1];
      const int at = product_of(program, uses, gelu, between, forward ? "fc" : "fc_data_grad");
      if (at < 0 || (!forward && uses.readers(between).size() != 1)) continue;
      const Op product = ops[at];
      if (forward) {
        ops[at] = program.make_op(gelu.section, "fc_gelu", product.inputs,
                                  {gelu.outputs[0], product.outputs[0]}, product.attributes);
      } else {
        ops[at] =
            program.make_op(gelu.section, "fc_gelu_data_grad",
                            {product.inputs[0], product.inputs[1], gelu.inputs[0]}, gelu.outputs);
      }
      removed[i] = true;
      changed += program.sections()[gelu.section].when.training;
    }
    if (std::find(removed.begin(), removed.end(), true) == removed.end()) return false;
    remove_ops(program, removed);
    log_fused("fuse_fc_gelu", changed);
    return true;
  }

 private:
  // The only writer of `between`, if it is a product of this type that can compute `gelu` as well;
  // otherwise -1.
  static int product_of(const Program& program, const Uses& uses, const Op& gelu, VarId between,
                        const std::string& type) {
    const Var &in = program.var(between), &out = program.var(gelu.outputs[0]);
    if (!gelu.attributes.boolean("approximate") || uses.writers(between).size() != 1) return -1;
    if (in.kind != VarKind::kTemporary || out.kind != VarKind::kTemporary) return -1;
    if (uses.writers(gelu.outputs[0]).size() != 1) return -1;
    for (VarId id : gelu.inputs) {
      if (program.var(id).dtype != in.dtype) return -1;
    }
    const int at = uses.writer(between);
    const Op& product = program.ops()[at];
    return product.type() == type && product.section == gelu.section ? at : -1;
  }
};

}  // namespace

FLEET_PASS(fuse_fc_gelu) {
  def.help = "computes gelu and its gradient in the epilogues of products";
  def.create = create_pass<FuseFcGelu>;
}

}  // namespace fleet
