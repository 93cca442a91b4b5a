// narrow_parameters: parameters are stored in bfloat16 instead of float32, without a master copy
// (train.weights_dtype). Their updates round them stochastically (optim/stochastic_rounding.h), and
// so do the updates' states, which take the parameter's type. Operations that amp runs in bfloat16
// read the parameter itself; others read a float32 cast of it, made for each reader, so that it
// lives no longer than that one. Gradients that the backward pass makes in bfloat16 stay in it.
//
// A parameter that every reader of the model takes in float32 even under amp
// (MixedPrecision::float32_inputs: the scale and shift of a norm) stays float32: it is small, and
// 8 bits are too few for it. Runs after the backward pass, before amp_parameters.
#include <algorithm>
#include <map>
#include <set>

#include "base/log.h"
#include "ops/mixed_precision.h"
#include "passes/pass.h"
#include "passes/pipeline.h"

namespace fleet {
namespace {

constexpr DType kLow = DType::kBFloat16;

class NarrowParameters : public Pass {
 public:
  bool run(Program& program, const PassContext&) override {
    FLEET_CHECK(program.find_section("backward") >= 0,
                "narrow_parameters before the backward pass");
    choose(program);
    if (narrow_.empty()) return false;
    for (const VarId parameter : narrow_) program.var(parameter).dtype = kLow;
    rewrite_readers(program);
    keep_gradients_low(program);
    const size_t all = program.parameters().size();
    spdlog::info("{} of {} parameters are stored in bfloat16, with stochastic rounding",
                 narrow_.size(), all);
    return true;
  }

 private:
  // Those that an operation of the forward part reads as something else than a float32 input.
  void choose(const Program& program) {
    const SectionId backward = program.find_section("backward");
    for (const Op& op : program.ops()) {
      if (op.section == backward) continue;
      const std::vector<int>& kept = mixed_precision_of(*op.def).float32_inputs;
      for (size_t i = 0; i < op.inputs.size(); ++i) {
        const VarId id = op.inputs[i];
        if (id == kNoVar || program.var(id).kind != VarKind::kParameter) continue;
        if (program.var(id).dtype != DType::kFloat32) continue;
        if (std::ranges::find(kept, static_cast<int>(i)) == kept.end()) narrow_.insert(id);
      }
    }
  }

  bool is_narrow(VarId id) const { return id != kNoVar && narrow_.contains(id); }

  void rewrite_readers(Program& program) {
    std::vector<Op> ops = std::move(program.ops());
    program.ops().clear();
    for (Op& op : ops) {
      const bool casts = op.type() == "cast" && is_narrow(op.inputs[0]) &&
                         program.var(op.outputs[0]).dtype == kLow;
      if (casts) {
        casts_[op.outputs[0]] = op.inputs[0];
        continue;
      }
      std::map<VarId, VarId> wide;  // this operation's
      for (VarId& id : op.inputs) {
        if (const auto found = casts_.find(id); found != casts_.end()) {
          id = found->second;
        } else if (is_narrow(id)) {
          if (!wide.contains(id)) wide[id] = widened(program, id, op);
          id = wide.at(id);
        }
      }
      program.ops().push_back(std::move(op));
    }
  }

  static VarId widened(Program& program, VarId parameter, const Op& reader) {
    const VarId wide = program.temporary(program.var(parameter).name + ".as_float32");
    copy_stage(reader, program.append(reader.section, "cast", {parameter}, {wide}));
    return wide;
  }

  // If the whole gradient of a parameter is a cast of a bfloat16 one, and nothing else reads the
  // latter, the latter replaces it.
  void keep_gradients_low(Program& program) const {
    std::vector<int> readers(program.var_count());
    for (const Op& op : program.ops()) {
      for (const VarId id : op.reads()) ++readers[id];
    }
    std::erase_if(program.ops(), [&](const Op& op) {
      if (op.type() != "cast") return false;
      const VarId low = op.inputs[0], wide = op.outputs[0];
      const auto cast = casts_.find(program.var(low).gradient_of);
      if (cast == casts_.end() || program.gradient(cast->second) != wide) return false;
      if (readers[low] != 1) return false;
      program.set_gradient(cast->second, low);
      return true;
    });
  }

  std::set<VarId> narrow_;
  std::map<VarId, VarId> casts_;  // parameters by their removed casts
};

}  // namespace

FLEET_PASS(narrow_parameters) {
  def.help = "stores parameters in bfloat16, with stochastic rounding";
  def.create = create_pass<NarrowParameters>;
}

}  // namespace fleet
