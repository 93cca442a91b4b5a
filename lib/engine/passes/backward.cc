#include "passes/backward.h"

#include <map>
#include <set>

#include "passes/pipeline.h"

namespace fleet {
namespace {

std::set<VarId> leaves_of(const Program& program, const std::vector<VarId>& wrt) {
  std::set<VarId> leaves(wrt.begin(), wrt.end());
  for (const VarId id : program.parameters()) {
    if (program.var(id).trainable) leaves.insert(id);
  }
  return leaves;
}

class Backward {
 public:
  Backward(Program& program, SectionId forward) : program_(program), forward_(forward) {}

  BackwardResult run(const std::vector<std::pair<VarId, VarId>>& seeds,
                     const std::vector<VarId>& wrt) {
    find_needed(seeds, wrt);
    if (program_.find_section("backward") < 0) {
      program_.add_section("backward", program_.sections()[forward_].when);
    }
    result_.section = program_.find_section("backward");
    for (const auto& [var, gradient] : seeds) contributions_[var].push_back(gradient);
    const size_t count = program_.ops().size();
    for (size_t i = count; i-- > 0;) {
      if (program_.ops()[i].section == forward_) visit(Op(program_.ops()[i]));
    }
    return result_;
  }

 private:
  class Context : public GradientContext {
   public:
    Context(Backward& backward, const Op& op, std::vector<VarId> gradients)
        : GradientContext(backward.program_, backward.result_.section, op, std::move(gradients)),
          backward_(backward) {}
    void pass_gradient(int i, VarId gradient) override {
      if (needs(i)) backward_.contributions_[input(i)].push_back(gradient);
    }
    // Whether the operations from `begin` on set all gradients, which a user's rule may miss.
    void check_made(size_t begin) {
      const Program& program = backward_.program_;
      std::set<VarId> set;
      for (size_t i = begin; i < program.ops().size(); ++i) {
        set.insert(program.ops()[i].outputs.begin(), program.ops()[i].outputs.end());
      }
      for (const VarId gradient : made_) {
        const Var& made = program.var(gradient);
        const Var& of = program.var(made.gradient_of);
        require(set.contains(gradient), "its gradient rule does not set that of '" + of.name + "'");
        require(made.shape == of.shape, "the gradient of '" + of.name + "' is " +
                                            made.shape.text() + ", not " + of.shape.text());
      }
    }

   protected:
    bool needs_gradient(VarId var) const override { return backward_.needed_.contains(var); }
    VarId new_gradient(VarId var) override {
      Program& program = backward_.program_;
      const VarId gradient = program.temporary(program.var(var).name + "@GRAD");
      program.var(gradient).gradient_of = var;
      made_.push_back(gradient);
      backward_.contributions_[var].push_back(gradient);
      return gradient;
    }

   private:
    Backward& backward_;
    std::vector<VarId> made_;
  };

  // A variable needs a gradient if it depends on a leaf and the seeds depend on it.
  void find_needed(const std::vector<std::pair<VarId, VarId>>& seeds,
                   const std::vector<VarId>& wrt) {
    leaves_ = leaves_of(program_, wrt);
    const std::set<VarId> from_leaf = differentiable_vars(program_, forward_, wrt);
    std::set<VarId> to_seed;
    for (const auto& [var, gradient] : seeds) to_seed.insert(var);
    for (size_t i = program_.ops().size(); i-- > 0;) {
      const Op& op = program_.ops()[i];
      if (op.section != forward_) continue;
      bool reaches = false;
      for (VarId id : op.outputs) reaches |= to_seed.contains(id);
      for (VarId id : op.inputs) {
        if (!reaches || id == kNoVar || !is_floating(program_.var(id).dtype)) continue;
        to_seed.insert(id);
        if (from_leaf.contains(id)) {
          needed_.insert(id);
          ++readers_[id];
        }
      }
    }
    for (const auto& [var, gradient] : seeds) needed_.insert(var);
  }

  // Returns the gradient of a variable whose readers have all contributed.
  VarId finish(VarId var) {
    const auto found = contributions_.find(var);
    if (found == contributions_.end()) return kNoVar;
    const std::vector<VarId> parts = found->second;
    contributions_.erase(found);
    VarId gradient = parts[0];
    // A leaf needs its own gradient variable, not one that was passed on from another variable.
    const bool shared = leaves_.contains(var) && program_.var(gradient).gradient_of != var;
    if (parts.size() > 1 || shared) {
      gradient = program_.temporary(program_.var(var).name + "@GRAD");
      program_.append(result_.section, "sum", parts, {gradient});
    }
    program_.set_gradient(var, gradient);
    return gradient;
  }

  void visit(const Op& op) {
    const size_t begin = program_.ops().size();
    std::vector<VarId> gradients;
    bool any = false;
    for (VarId id : op.outputs) {
      gradients.push_back(id == kNoVar || !needed_.contains(id) ? kNoVar : finish(id));
      any |= gradients.back() != kNoVar;
    }
    if (any) {
      Context context(*this, op, gradients);
      context.require(op.def->gradient != nullptr,
                      op.type() + " has no gradient, but lies between a parameter and the loss");
      op.def->gradient(context);
      context.check_made(begin);
    }
    for (VarId id : op.inputs) {
      if (!needed_.contains(id) || --readers_[id] > 0 || !leaves_.contains(id)) continue;
      if (finish(id) != kNoVar && program_.var(id).kind == VarKind::kParameter) {
        result_.parameters.push_back(id);
      }
    }
    for (size_t i = begin; i < program_.ops().size(); ++i) copy_stage(op, program_.ops()[i]);
  }

  Program& program_;
  const SectionId forward_;
  std::set<VarId> needed_, leaves_;
  std::map<VarId, int> readers_;  // readers whose gradients are still missing
  std::map<VarId, std::vector<VarId>> contributions_;
  BackwardResult result_;
};

}  // namespace

BackwardResult append_backward_from(Program& program, SectionId forward,
                                    const std::vector<std::pair<VarId, VarId>>& seeds,
                                    const std::vector<VarId>& wrt) {
  return Backward(program, forward).run(seeds, wrt);
}

BackwardResult append_backward(Program& program, SectionId forward, VarId loss, double scale,
                               VarId loss_scaling, const std::vector<VarId>& wrt) {
  const SectionId section = program.add_section("backward", program.sections()[forward].when);
  const VarId seed = program.temporary(program.var(loss).name + "@GRAD");
  if (loss_scaling == kNoVar) {
    const std::span<const int64_t> dims = program.var(loss).shape.dims();
    program.append(section, "fill", {}, {seed},
                   {{"shape", std::vector<int64_t>(dims.begin(), dims.end())}, {"value", scale}});
  } else {
    program.append(section, "scale", {loss_scaling}, {seed}, {{"scale", scale}});
  }
  BackwardResult result = append_backward_from(program, forward, {{loss, seed}}, wrt);
  result.loss_scaling = loss_scaling;
  return result;
}

std::set<VarId> differentiable_vars(const Program& program, SectionId forward,
                                    const std::vector<VarId>& wrt) {
  std::set<VarId> vars = leaves_of(program, wrt);
  for (const Op& op : program.ops()) {
    if (op.section != forward) continue;
    bool depends = false;
    for (const VarId id : op.inputs) depends |= vars.contains(id);
    for (const VarId id : op.outputs) {
      if (depends && id != kNoVar && program.var(id).kind == VarKind::kTemporary) vars.insert(id);
    }
  }
  return vars;
}

}  // namespace fleet
