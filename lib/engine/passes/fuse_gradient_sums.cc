// fuse_gradient_sums: if the gradient of an activation's output is a sum over its readers (the join
// of a residual block), fuses the sum and the activation's gradient into one operation: one pass
// over memory instead of two. Runs after the backward pass.
#include "passes/fuse_activation.h"
#include "passes/pass.h"
#include "passes/uses.h"

namespace fleet {
namespace {

// The index of the gradient among an operation's inputs if it may be given in parts; -1 otherwise.
int gradient_input(const Op& op) {
  if (op.type() == "relu_grad") return 1;
  const bool norm =
      op.type() == "fused_bn_add_activation_grad" || op.type() == "batch_norm_activation_grad";
  if (norm && op.inputs.size() == 6) return 5;
  return -1;
}

class FuseGradientSums : public Pass {
 public:
  bool run(Program& program, const PassContext&) override {
    const Uses uses(program);
    std::vector<Op>& ops = program.ops();
    std::vector<bool> removed(ops.size(), false);
    int fused = 0;
    for (Op& op : ops) {
      const int at = gradient_input(op);
      if (at < 0 || !is_own_sum(program, uses, op, op.inputs[at])) continue;
      const int sum = uses.writer(op.inputs[at]);
      std::vector<VarId> inputs(op.inputs.begin(), op.inputs.begin() + at);
      inputs.insert(inputs.end(), ops[sum].inputs.begin(), ops[sum].inputs.end());
      const std::string type = op.type() == "relu_grad" ? "sum_relu_grad" : op.type();
      op = program.make_op(op.section, type, inputs, op.outputs, op.attributes);
      removed[sum] = true;
      ++fused;
    }
    if (!fused) return false;
    remove_ops(program, removed);
    log_fused("fuse_gradient_sums", fused);
    return true;
  }

 private:
  // Whether dy is a sum that only this operation reads.
  static bool is_own_sum(const Program& program, const Uses& uses, const Op& reader, VarId dy) {
    if (uses.writer(dy) < 0 || uses.readers(dy).size() != 1) return false;
    const Op& sum = program.ops()[uses.writer(dy)];
    return sum.type() == "sum" && sum.section == reader.section && sum.inputs.size() > 1;
  }
};

}  // namespace

FLEET_PASS(fuse_gradient_sums) {
  def.help = "fuses the sum over an activation's readers into its gradient";
  def.create = create_pass<FuseGradientSums>;
}

}  // namespace fleet
