// sam_scale: the factor -rho / (norm + 1e-12) of the gradients of optim/sam.h, as a negative
// learning rate; norm = sqrt(square) / loss_scaling. loss_scaling float32 [1] (absent: 1): the
// factor of these gradients. For a norm that is not finite it is not finite either, so that the
// second pass shows the damage.
#include "optim/sam.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "ops/mixed_precision.h"
#include "optim/row_update.h"

namespace fleet {

FLEET_OP(sam_scale) {
  def.inputs = {{"square"}, {"loss_scaling", Slot::kOptional}};
  def.outputs = {{"scale"}};
  def.attributes = {{"rho", 0.05}};
  def.add_trait<MixedPrecision>().on_custom_lists = false;
  def.infer = [](ShapeContext& context) { context.set_like(0, 0); };
}

namespace {

class Sam {
 public:
  Sam(Program& program, SectionId backward)
      : program_(program), section_(program.add_section("sam", program.sections()[backward].when)) {
    for (const VarId id : program.parameters()) {
      const VarId gradient = program.gradient(id);
      if (program.var(id).trainable && gradient != kNoVar) gradients_[id] = gradient;
    }
  }

  void run(VarId loss_scaling, const SamOptions& options) {
    const std::vector<Op> again = gradient_ops();
    save();
    climb(loss_scaling, options);
    for (const Op& op : again) program_.ops().push_back(repeated(op));
    for (const auto& [parameter, saved] : saved_) {
      program_.append(section_, "sum", {saved}, {parameter});
    }
    for (const auto& [parameter, gradient] : gradients_) {
      program_.set_gradient(parameter, second_.at(gradient));
    }
    verify(program_);
  }

 private:
  // In order, the operations that the gradients depend on and whose results other weights would
  // change.
  std::vector<Op> gradient_ops() const {
    const std::set<VarId> changed = changed_vars();
    std::set<VarId> needed;
    for (const auto& [parameter, gradient] : gradients_) needed.insert(gradient);
    std::vector<Op> ops;
    for (auto op = program_.ops().rbegin(); op != program_.ops().rend(); ++op) {
      const Predicate& when = program_.sections()[op->section].when;
      if (!when.training || when.fetch_only) continue;
      const bool wanted = std::ranges::any_of(op->outputs, [&](VarId id) {
        return id != kNoVar && program_.var(id).kind == VarKind::kTemporary && needed.contains(id);
      });
      const bool changes =
          std::ranges::any_of(op->outputs, [&](VarId id) { return changed.contains(id); });
      if (!wanted || !changes) continue;
      needed.insert(op->inputs.begin(), op->inputs.end());
      ops.push_back(*op);
    }
    std::ranges::reverse(ops);
    return ops;
  }

  // Variables that depend on the weights, unlike a teacher's logits and features of frozen layers.
  std::set<VarId> changed_vars() const {
    std::set<VarId> changed;
    for (const auto& [parameter, gradient] : gradients_) {
      changed.insert({parameter, program_.copy_of(parameter)});
    }
    changed.erase(kNoVar);
    for (const Op& op : program_.ops()) {
      if (!std::ranges::any_of(op.inputs, [&](VarId id) { return changed.contains(id); })) continue;
      for (const VarId id : op.outputs) {
        if (id != kNoVar) changed.insert(id);
      }
    }
    return changed;
  }

  void save() {
    for (const auto& [parameter, gradient] : gradients_) {
      saved_[parameter] = program_.emit(section_, "sum", {parameter}, {},
                                        program_.var(parameter).name + ".before_sam")[0];
    }
  }

  // Moves the weights to w + e.
  void climb(VarId loss_scaling, const SamOptions& options) {
    std::map<VarId, VarId> steps = gradients_;  // e without its common factor
    std::vector<VarId> measured;
    for (auto& [parameter, step] : steps) {
      if (options.adaptive) {
        const std::string& name = program_.var(parameter).name;
        const auto times_weight = [&](VarId value) {
          return program_.emit(section_, "elementwise_mul", {value, parameter}, {},
                               name + ".sam")[0];
        };
        if (program_.var(step).dtype != DType::kFloat32) {
          step = program_.emit(section_, "cast", {step}, {}, name + ".sam")[0];
        }
        const VarId weighted = times_weight(step);
        measured.push_back(weighted);
        step = times_weight(weighted);
      } else {
        measured.push_back(step);
      }
    }
    const VarId square = program_.emit(section_, "sum_of_squares", measured, {}, "sam_norm")[0];
    const VarId scale = program_.emit(section_, "sam_scale", {square, loss_scaling},
                                      {{"rho", options.rho}}, "sam_scale")[0];
    for (const auto& [parameter, step] : steps) {
      program_.append(section_, "sgd", {scale, kNoVar, kNoVar, kNoVar, parameter, step},
                      {parameter, program_.copy_of(parameter)}, {{"weight_decay", 0.0}});
    }
  }

  // The operation, with variables of the second pass.
  Op repeated(Op op) {
    op.section = section_;
    for (std::vector<VarId>* vars : {&op.inputs, &op.outputs, &op.after}) {
      for (VarId& id : *vars) {
        if (id != kNoVar) id = vars == &op.outputs ? written(id) : read(id);
      }
    }
    return op;
  }

  // Parameters, feeds and variables that do not depend on the weights stay the same.
  VarId read(VarId id) const {
    const auto found = second_.find(id);
    return found == second_.end() ? id : found->second;
  }
  // Running statistics are written aside: the second pass does not change them.
  VarId written(VarId id) {
    const auto found = second_.find(id);
    if (found != second_.end()) return found->second;
    const Var& var = program_.var(id);
    if (var.kind != VarKind::kTemporary && var.kind != VarKind::kState) return id;
    Var copy = var;
    copy.kind = VarKind::kTemporary;
    copy.name += "@SAM";
    while (program_.find(copy.name) != kNoVar) copy.name += "M";
    copy.copy_of = kNoVar;
    copy.per_rank = false;
    return second_[id] = program_.add_var(copy);
  }

  Program& program_;
  const SectionId section_;
  std::map<VarId, VarId> gradients_, saved_;  // by parameter
  std::map<VarId, VarId> second_;             // by variable of the first pass
};

}  // namespace

void append_sam(Program& program, SectionId backward, VarId loss_scaling,
                const SamOptions& options) {
  for (const VarId id : program.parameters()) {
    const VarId gradient = program.gradient(id);
    if (gradient == kNoVar || rows_of_gradient(program, gradient) == kNoVar) continue;
    throw Error(ErrorCode::kUnsupported,
                "the gradient of '" + program.var(id).name + "' has only some of its rows",
                "train.sam.rho", "set it to 0, or model.sparse_embedding to false");
  }
  Sam(program, backward).run(loss_scaling, options);
}

}  // namespace fleet
