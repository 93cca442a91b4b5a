// fuse_elewise_add_act: fuses the relu, tanh or scale that follows an addition, or that precedes
// one of its operands, into the addition. Runs before the backward pass.
#include <algorithm>
#include <optional>

#include "passes/fuse_activation.h"
#include "passes/pass.h"
#include "passes/uses.h"

namespace fleet {
namespace {

class FuseElewiseAddAct : public Pass {
 public:
  bool run(Program& program, const PassContext&) override {
    int fused = fuse_activations(program, "elementwise_add");
    program_ = &program;
    uses_.emplace(program);
    removed_.assign(program.ops().size(), false);
    for (size_t i = 0; i < program.ops().size(); ++i) {
      Op& op = program.ops()[i];
      if (is_plain_sum(op)) fused += take_scale_behind(op) || take_in_front(op);
    }
    remove_ops(program, removed_);
    if (fused) log_fused("fuse_elewise_add_act", count());
    return fused > 0;
  }

 private:
  static bool is_plain_sum(const Op& op) {
    return op.type() == "elementwise_add" && op.attributes.text("activation").empty() &&
           op.attributes.text("y_activation").empty();
  }

  bool is_between(VarId id) const {
    return program_->var(id).kind == VarKind::kTemporary && uses_->readers(id).size() == 1;
  }

  // Returns the operation that replaces the sum `op`, with `act` at one of its positions.
  Op with(const Op& op, const Op& act, const std::string& place, std::vector<VarId> inputs,
          std::vector<VarId> outputs) const {
    Attributes attributes = op.attributes;
    attributes.set(place, act.type());
    if (act.type() == "scale") {
      attributes.set("scale", act.attributes.number("scale"));
      attributes.set("bias", act.attributes.number("bias"));
    }
    return program_->make_op(op.section, op.type(), std::move(inputs), std::move(outputs),
                             attributes);
  }

  bool take_scale_behind(Op& op) {
    const VarId sum = op.outputs[0];
    if (!is_between(sum)) return false;
    const int at = uses_->readers(sum)[0];
    const Op& scale = program_->ops()[at];
    const bool takes = scale.type() == "scale" && scale.section == op.section &&
                       program_->var(scale.outputs[0]).kind == VarKind::kTemporary;
    if (!takes) return false;
    op = with(op, scale, "activation", op.inputs, scale.outputs);
    removed_[at] = true;
    return true;
  }

  // If both operands have the same shape, either may be the second.
  bool take_in_front(Op& op) {
    const VarId x = op.inputs[0], y = op.inputs[1];
    if (can_take(op, y)) return take(op, x, y);
    const bool either = program_->var(x).shape == program_->var(y).shape;
    return either && can_take(op, x) && take(op, y, x);
  }

  bool can_take(const Op& op, VarId y) const {
    if (!is_between(y) || uses_->writer(y) < 0 || removed_[uses_->writer(y)]) return false;
    const Op& act = program_->ops()[uses_->writer(y)];
    const bool takes = act.type() == "relu" || act.type() == "tanh" || act.type() == "scale";
    return takes && act.section == op.section;
  }

  bool take(Op& op, VarId x, VarId y) {
    const Op& act = program_->ops()[uses_->writer(y)];
    removed_[uses_->writer(y)] = true;
    op = with(op, act, "y_activation", {x, act.inputs[0]}, op.outputs);
    return true;
  }

  // Number of fused additions in training.
  int count() const {
    return static_cast<int>(
        std::count_if(program_->ops().begin(), program_->ops().end(), [&](const Op& op) {
          return op.type() == "elementwise_add" && !is_plain_sum(op) &&
                 program_->sections()[op.section].when.training;
        }));
  }

  Program* program_ = nullptr;
  std::optional<Uses> uses_;
  std::vector<bool> removed_;  // by operation
};

}  // namespace

FLEET_PASS(fuse_elewise_add_act) {
  def.help = "an addition computes the relu, tanh or scale after or before it";
  def.create = create_pass<FuseElewiseAddAct>;
}

}  // namespace fleet
