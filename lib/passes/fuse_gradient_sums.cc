// fuse_gradient_sums: where the gradient of an activation's output is a sum over its readers (the
// join of a residual block), the sum and the activation's gradient become one operation: one pass
// over memory instead of two. Runs after the backward pass.
#include "passes/fuse_activation.h"
#include "passes/pass.h"

namespace fleet {
namespace {

// Where among an operation's inputs the gradient stands that may be given in parts; -1: nowhere.
int gradient_input(const Op& op) {
  if (op.type() == "relu_grad") return 1;
  if (op.type() == "fused_bn_add_activation_grad" && op.inputs.size() == 6) return 5;
  return -1;
}

class FuseGradientSums : public Pass {
 public:
  bool run(Program& program, const PassContext&) override {
    find_uses(program);
    std::vector<Op>& ops = program.ops();
    std::vector<bool> removed(ops.size(), false);
    int fused = 0;
    for (Op& op : ops) {
      const int at = gradient_input(op);
      if (at < 0 || !is_own_sum(ops, op, op.inputs[at])) continue;
      const int sum = writer_[op.inputs[at]];
      std::vector<VarId> inputs(op.inputs.begin(), op.inputs.begin() + at);
      inputs.insert(inputs.end(), ops[sum].inputs.begin(), ops[sum].inputs.end());
      const std::string type = op.type() == "relu_grad" ? "sum_relu_grad" : op.type();
      op = program.make_op(op.section, type, inputs, op.outputs, op.attributes);
      removed[sum] = true;
      ++fused;
    }
    if (!fused) return false;
    std::vector<Op> kept;
    for (size_t i = 0; i < ops.size(); ++i) {
      if (!removed[i]) kept.push_back(std::move(ops[i]));
    }
    ops = std::move(kept);
    log_fused("fuse_gradient_sums", fused);
    return true;
  }

 private:
  void find_uses(const Program& program) {
    readers_.assign(program.var_count(), 0);
    writer_.assign(program.var_count(), -1);
    for (size_t i = 0; i < program.ops().size(); ++i) {
      for (VarId id : program.ops()[i].inputs) {
        if (id != kNoVar) ++readers_[id];
      }
      for (VarId id : program.ops()[i].outputs) {
        if (id != kNoVar) writer_[id] = static_cast<int>(i);
      }
    }
  }

  // Whether dy is a sum that nobody but this operation reads.
  bool is_own_sum(const std::vector<Op>& ops, const Op& reader, VarId dy) const {
    if (writer_[dy] < 0 || readers_[dy] != 1) return false;
    const Op& sum = ops[writer_[dy]];
    return sum.type() == "sum" && sum.section == reader.section && sum.inputs.size() > 1;
  }

  std::vector<int> readers_, writer_;  // by variable
};

}  // namespace

FLEET_PASS(fuse_gradient_sums) {
  def.help = "an activation's gradient takes in the sum over the activation's readers";
  def.create = [](const Attributes&) -> std::unique_ptr<Pass> {
    return std::make_unique<FuseGradientSums>();
  };
}

}  // namespace fleet
