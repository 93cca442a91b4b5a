// fuse_relu_grad_sum: where the gradient of an activation's output is a sum over its readers (the
// join of a residual block), the sum and the activation's gradient become one operation: one pass
// over memory instead of two. Runs after the backward pass.
#include "base/log.h"
#include "passes/pass.h"

namespace fleet {
namespace {

class FuseReluGradSum : public Pass {
 public:
  bool run(Program& program, const PassContext&) override {
    std::vector<int> readers(program.var_count(), 0), writer(program.var_count(), -1);
    std::vector<Op>& ops = program.ops();
    for (size_t i = 0; i < ops.size(); ++i) {
      for (VarId id : ops[i].inputs) {
        if (id != kNoVar) ++readers[id];
      }
      for (VarId id : ops[i].outputs) {
        if (id != kNoVar) writer[id] = static_cast<int>(i);
      }
    }
    std::vector<bool> removed(ops.size(), false);
    int fused = 0;
    for (Op& op : ops) {
      if (op.type() != "relu_grad") continue;
      const VarId y = op.inputs[0], dy = op.inputs[1];
      if (writer[dy] < 0 || readers[dy] != 1) continue;
      const Op& sum = ops[writer[dy]];
      if (sum.type() != "sum" || sum.section != op.section || sum.inputs.size() < 2) continue;
      std::vector<VarId> inputs = {y};
      inputs.insert(inputs.end(), sum.inputs.begin(), sum.inputs.end());
      removed[writer[dy]] = true;
      op = program.make_op(op.section, "sum_relu_grad", inputs, op.outputs);
      ++fused;
    }
    if (!fused) return false;
    std::vector<Op> kept;
    for (size_t i = 0; i < ops.size(); ++i) {
      if (!removed[i]) kept.push_back(std::move(ops[i]));
    }
    ops = std::move(kept);
    spdlog::debug("fuse_relu_grad_sum: {} activations' gradients take in a sum", fused);
    return true;
  }
};

}  // namespace

FLEET_PASS(fuse_relu_grad_sum) {
  def.help = "an activation's gradient takes in the sum over the activation's readers";
  def.create = [](const Attributes&) -> std::unique_ptr<Pass> {
    return std::make_unique<FuseReluGradSum>();
  };
}

}  // namespace fleet
