// merge_gradients: every training step adds its gradients to float32 accumulators, which replace
// the gradients. Their readers run in steps that end a round of k; zero_accumulators, after the
// updates, resets them. Runs after the backward pass and before the sums over ranks. per_rank: the
// accumulators differ between ranks. saved: checkpoints have them.
#include <map>

#include "passes/gradients.h"
#include "passes/pass.h"
#include "passes/uses.h"

namespace fleet {
namespace {

constexpr char kNotSaved[] = "unsaved.";  // is_saved()

class MergeGradients : public Pass {
 public:
  explicit MergeGradients(const Attributes& options)
      : per_rank_(options.boolean("per_rank")), saved_(options.boolean("saved")) {}
  bool run(Program& program, const PassContext&) override {
    const SectionId backward = program.find_section("backward");
    FLEET_CHECK(backward >= 0, "merge_gradients before the backward pass");
    std::map<VarId, VarId> parameter_of;  // by gradient
    for (const VarId parameter : program.parameters()) {
      const VarId gradient = program.gradient(parameter);
      if (gradient != kNoVar && program.var(parameter).trainable) {
        parameter_of[gradient] = parameter;
      }
    }
    insert_behind_writers(program, [&](VarId id, std::vector<Op>* ops) {
      const auto found = parameter_of.find(id);
      if (found == parameter_of.end()) return;
      accumulate(program, backward, found->second, id, ops);
    });
    return !parameter_of.empty();
  }

 private:
  void accumulate(Program& program, SectionId backward, VarId parameter, VarId gradient,
                  std::vector<Op>* ops) const {
    const Var& var = program.var(parameter);
    const std::string name = var.name + kMergedGradient;
    const VarId merged = program.state(saved_ ? name : kNotSaved + name, var.shape, Init());
    program.var(merged).per_rank = per_rank_;
    add_to_sum(program, backward, gradient, merged, ops);
    program.set_gradient(parameter, merged);
  }

  const bool per_rank_, saved_;
};

class ZeroAccumulators : public Pass {
 public:
  explicit ZeroAccumulators(const Attributes& options) : section_(options.text("section")) {}
  bool run(Program& program, const PassContext&) override {
    const SectionId section = program.find_section(section_);
    FLEET_CHECK(section >= 0, "zero_accumulators needs a section");
    bool any = false;
    for (const VarId parameter : program.parameters()) {
      const std::string name = program.var(parameter).name + kMergedGradient;
      VarId merged = program.find(name);
      if (merged == kNoVar) merged = program.find(kNotSaved + name);
      if (merged == kNoVar) continue;
      program.append(section, "fill", {}, {merged},
                     {{"shape", to_attribute(program.var(merged).shape)}});
      any = true;
    }
    return any;
  }

 private:
  const std::string section_;
};

}  // namespace

FLEET_PASS(merge_gradients) {
  def.help = "adds up the gradients of several steps";
  def.options = {{"per_rank", true}, {"saved", true}};
  def.create = create_pass<MergeGradients>;
}

FLEET_PASS(zero_accumulators) {
  def.help = "resets the sums of merge_gradients";
  def.options = {{"section", std::string("optimize")}};
  def.create = create_pass<ZeroAccumulators>;
}

}  // namespace fleet
