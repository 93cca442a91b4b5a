#include "passes/fuse_activation.h"

#include <algorithm>

#include "base/log.h"
#include "ops/activation.h"
#include "passes/backward.h"
#include "passes/uses.h"

namespace fleet {
namespace {

template <typename Trait>
bool takes_in(const Op& op, const Op& activation) {
  const Trait* fuses = op.def->find_trait<Trait>();
  if (!fuses || !activation.def->find_trait<Activation>()) return false;
  return std::find(fuses->types.begin(), fuses->types.end(), activation.type()) !=
         fuses->types.end();
}

template <typename Trait>
int fuse_all(Program& program, const std::string& type) {
  FLEET_CHECK(program.find_section("backward") < 0, "fusing activations after the backward pass");
  const Uses uses(program);
  std::vector<bool> removed(program.ops().size(), false);
  int fused = 0;
  for (Op& op : program.ops()) {
    if (op.type() != type || !op.attributes.text("activation").empty()) continue;
    const VarId y = op.outputs[0];
    if (program.var(y).kind != VarKind::kTemporary || uses.readers(y).size() != 1) continue;
    const Op& activation = program.ops()[uses.readers(y)[0]];
    if (activation.section != op.section || !takes_in<Trait>(op, activation)) continue;
    op = program.make_op(
        op.section, type, op.inputs,
        [&] {
          std::vector<VarId> outputs = op.outputs;
          outputs[0] = activation.outputs[0];
          return outputs;
        }(),
        [&] {
          Attributes attributes = op.attributes;
          attributes.set("activation", activation.type());
          return attributes;
        }());
    removed[uses.readers(y)[0]] = true;
    ++fused;
  }
  remove_ops(program, removed);
  return fused;
}

}  // namespace

int fuse_activations(Program& program, const std::string& type) {
  return fuse_all<FusesActivations>(program, type);
}

int fuse_recomputed_activations(Program& program, const std::string& type) {
  return fuse_all<RecomputesActivations>(program, type);
}

bool needs_mask(const Program& program, const Op& norm) {
  if (!norm.attributes.boolean("is_test")) return true;
  if (!program.sections()[norm.section].when.training) return false;
  const std::set<VarId> vars = differentiable_vars(program, norm.section);
  return std::ranges::any_of(norm.inputs, [&](VarId id) { return vars.contains(id); });
}

int count_fused(const Program& program, const std::string& type) {
  return static_cast<int>(
      std::count_if(program.ops().begin(), program.ops().end(), [&](const Op& op) {
        return op.type() == type && program.sections()[op.section].when.training &&
               !op.attributes.text("activation").empty();
      }));
}

void log_fused(const std::string& pass, int count) {
  spdlog::info("---  detected {} subgraphs ({})", count, pass);
}

}  // namespace fleet
