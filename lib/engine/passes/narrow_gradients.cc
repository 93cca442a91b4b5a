// narrow_gradients: float32 gradients are sent between ranks in a low-precision type; updates widen
// them. No guard against overflow, as in Paddle's fp16_allreduce. Runs after the backward pass and
// before fuse_all_reduce. A gradient that several operations add up (those of micro-batches) is
// cast once, after the last of them.
#include <map>

#include "graph/op.h"
#include "passes/pass.h"
#include "passes/uses.h"

namespace fleet {
namespace {

class NarrowGradients : public Pass {
 public:
  explicit NarrowGradients(DType low) : low_(low) {}
  bool run(Program& program, const PassContext& context) override {
    const SectionId backward = program.find_section("backward");
    FLEET_CHECK(backward >= 0, "narrow_gradients before the backward pass");
    if (context.data_parallel_degree() <= 1) return false;
    std::map<VarId, VarId> parameter_of;  // by float32 gradient
    for (VarId parameter : program.parameters()) {
      const VarId gradient = program.gradient(parameter);
      if (gradient == kNoVar || program.var(gradient).dtype != DType::kFloat32) continue;
      parameter_of[gradient] = parameter;
    }
    const Uses uses(program);
    std::vector<Op> ops;
    std::vector<Op> old = std::move(program.ops());
    for (size_t i = 0; i < old.size(); ++i) {
      const std::vector<VarId> outputs = old[i].outputs;
      const bool computes = old[i].section == backward;
      ops.push_back(std::move(old[i]));
      for (VarId id : outputs) {
        const auto found = parameter_of.find(id);
        if (found == parameter_of.end() || !computes) continue;
        if (uses.writer(id) != static_cast<int>(i)) continue;
        const VarId narrow = program.temporary(program.var(id).name + "@" + name_of(low_));
        ops.push_back(program.make_op(backward, "cast", {id}, {narrow},
                                      {{"to", std::string(name_of(low_))}}));
        program.set_gradient(found->second, narrow);
      }
    }
    program.ops() = std::move(ops);
    return !parameter_of.empty();
  }

 private:
  const DType low_;
};

}  // namespace

FLEET_PASS(narrow_gradients) {
  def.help = "sends gradients between ranks in a low type";
  def.options = {{"to", std::string("float16")}};
  def.create = [](const Attributes& options) -> std::unique_ptr<Pass> {
    return std::make_unique<NarrowGradients>(to_dtype(options.text("to")));
  };
}

}  // namespace fleet
