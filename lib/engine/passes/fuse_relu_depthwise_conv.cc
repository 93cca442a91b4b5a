// fuse_relu_depthwise_conv: fuses a relu into the depthwise convolution that is its only reader.
// The convolution applies it when reading its input, so that the relu's output is neither written
// nor stored. The mask comes from the relu's input, which the backward pass keeps instead. This
// saves memory if that input is kept anyway (a convolution around relu and this one). Runs before
// the backward pass and after fuse_bn_act: a batch normalization that has fused the relu keeps it.
#include "base/log.h"
#include "passes/fuse_activation.h"
#include "passes/pass.h"
#include "passes/uses.h"

namespace fleet {
namespace {

constexpr int64_t kMaxTaps = 64;  // limit of every backend's kernel

class FuseReluDepthwiseConv : public Pass {
 public:
  bool run(Program& program, const PassContext&) override {
    FLEET_CHECK(program.find_section("backward") < 0,
                "fuse_relu_depthwise_conv after the backward pass");
    const Uses uses(program);
    std::vector<Op>& ops = program.ops();
    std::vector<bool> removed(ops.size(), false);
    int fused = 0, with_norm = 0;
    for (Op& op : ops) {
      if (!is_depthwise(program, op)) continue;
      const VarId x = op.inputs[0];
      const int writer = uses.writer(x);
      if (writer < 0) continue;
      const Op& maker = ops[writer];
      const bool trains = program.sections()[op.section].when.training;
      with_norm += trains && is_norm_with_relu(maker);
      if (maker.type() != "relu" || maker.section != op.section || uses.readers(x).size() != 1)
        continue;
      removed[writer] = true;
      op = take_in(program, op, maker.inputs[0]);
      fused += trains;
    }
    log_result(fused, with_norm);
    if (!fused) return false;
    remove_ops(program, removed);
    return true;
  }

 private:
  static bool is_depthwise(const Program& program, const Op& op) {
    if (op.type() != "conv2d" || !op.attributes.text("input_activation").empty()) return false;
    const Shape &x = program.var(op.inputs[0]).shape, &weight = program.var(op.inputs[1]).shape;
    const int64_t groups = op.attributes.integer("groups");
    return groups > 1 && groups == x[1] && groups == weight[0] && weight[2] * weight[3] <= kMaxTaps;
  }

  static bool is_norm_with_relu(const Op& op) {
    return (op.type() == "batch_norm" || op.type() == "fused_bn_add_activation") &&
           op.attributes.text("activation") == "relu";
  }

  static Op take_in(Program& program, const Op& conv, VarId x) {
    std::vector<VarId> inputs = conv.inputs;
    inputs[0] = x;
    Attributes attributes = conv.attributes;
    attributes.set("input_activation", std::string("relu"));
    return program.make_op(conv.section, conv.type(), inputs, conv.outputs, attributes);
  }

  static void log_result(int fused, int with_norm) {
    log_fused("fuse_relu_depthwise_conv", fused);
    if (with_norm == 0) return;
    spdlog::info(
        "fuse_relu_depthwise_conv: {} relus in front of depthwise convolutions stay fused into the "
        "batch normalization that computes them: fuse_bn_act_ops runs first and saves as much",
        with_norm);
  }
};

}  // namespace

FLEET_PASS(fuse_relu_depthwise_conv) {
  def.help = "a depthwise convolution applies the relu before it";
  def.create = create_pass<FuseReluDepthwiseConv>;
}

}  // namespace fleet
