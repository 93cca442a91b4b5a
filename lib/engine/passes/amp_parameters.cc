// amp_parameters: parameters that amp would cast in every step get a persistent copy in the low
// type instead, which their update writes (optim/update_op.h). Their gradients stay in the low
// type: they are allreduced in it, and the update widens them. Runs after the backward pass and
// before fuse_all_reduce; needs amp. The parameters themselves are float32: the master weights.
//
// Section "refresh" makes the copies after the host wrote the parameters (Predicate::refresh).
#include <map>
#include <set>

#include "passes/pass.h"

namespace fleet {
namespace {

class AmpParameters : public Pass {
 public:
  bool run(Program& program, const PassContext&) override {
    FLEET_CHECK(program.find_section("backward") >= 0, "amp_parameters before the backward pass");
    replace_casts(program);
    if (copies_.empty()) return false;
    keep_gradients_low(program);
    append_refresh(program);
    return true;
  }

 private:
  static bool is_cast_of_parameter(const Program& program, const Op& op) {
    return op.type() == "cast" && program.var(op.inputs[0]).kind == VarKind::kParameter &&
           program.var(op.inputs[0]).dtype == DType::kFloat32 &&
           is_floating(program.var(op.outputs[0]).dtype);
  }

  void replace_casts(Program& program) {
    std::vector<Op> kept;
    for (Op& op : program.ops()) {
      if (is_cast_of_parameter(program, op)) {
        const VarId parameter = op.inputs[0];
        VarId copy = program.copy_of(parameter);
        if (copy == kNoVar) {
          copy = program.make_copy(parameter, program.var(op.outputs[0]).dtype);
        }
        copies_[op.outputs[0]] = copy;
        continue;
      }
      for (VarId& id : op.inputs) {
        const auto found = copies_.find(id);
        if (found != copies_.end()) id = found->second;
      }
      kept.push_back(std::move(op));
    }
    program.ops() = std::move(kept);
  }

  // If the whole gradient of a parameter is a cast of its copy's gradient, and nothing else reads
  // the latter, the latter replaces it.
  void keep_gradients_low(Program& program) {
    std::vector<int> readers(program.var_count());
    for (const Op& op : program.ops()) {
      for (VarId id : op.reads()) ++readers[id];
    }
    std::erase_if(program.ops(), [&](const Op& op) {
      if (op.type() != "cast") return false;
      const VarId low = op.inputs[0], wide = op.outputs[0];
      const auto copy = copies_.find(program.var(low).gradient_of);
      if (copy == copies_.end()) return false;
      const VarId parameter = program.var(copy->second).copy_of;
      if (program.gradient(parameter) != wide || readers[low] != 1) return false;
      program.set_gradient(parameter, low);
      return true;
    });
  }

  void append_refresh(Program& program) const {
    const SectionId refresh = program.add_section("refresh", {.training = false, .refresh = true});
    std::set<VarId> done;
    for (const auto& [cast, copy] : copies_) {
      if (done.insert(copy).second) program.append_copy(refresh, program.var(copy).copy_of);
    }
  }

  std::map<VarId, VarId> copies_;  // by the removed cast variable
};

}  // namespace

FLEET_PASS(amp_parameters) {
  def.help = "parameters that amp casts get a persistent copy in the low type";
  def.create = create_pass<AmpParameters>;
}

}  // namespace fleet
