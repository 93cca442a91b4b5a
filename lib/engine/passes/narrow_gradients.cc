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
  explicit NarrowGradients(const Attributes& options) : low_(to_dtype(options.text("to"))) {}
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
    insert_behind_writers(program, [&](VarId id, std::vector<Op>* ops) {
      const auto found = parameter_of.find(id);
      if (found == parameter_of.end() || ops->back().section != backward) return;
      const VarId narrow = program.temporary(program.var(id).name + "@" + name_of(low_));
      ops->push_back(
          program.make_op(backward, "cast", {id}, {narrow}, {{"to", std::string(name_of(low_))}}));
      program.set_gradient(found->second, narrow);
    });
    return !parameter_of.empty();
  }

 private:
  const DType low_;
};

}  // namespace

FLEET_PASS(narrow_gradients) {
  def.help = "sends gradients between ranks in a low type";
  def.options = {{"to", std::string("float16")}};
  def.create = create_pass<NarrowGradients>;
}

}  // namespace fleet
