#include <set>

#include "cost/rates.h"
#include "ops/arithmetic.h"

namespace fleet {
namespace {

double bytes_of(const Plan& plan, const std::vector<VarId>& ids,
                const std::vector<Layout>& layouts) {
  double bytes = 0;
  std::set<VarId> seen;  // an operation reads a repeated input from the cache
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == kNoVar || !seen.insert(ids[i]).second) continue;
    bytes += static_cast<double>(layouts[i].elements()) *
             static_cast<double>(size_of(plan.program.var(ids[i]).dtype));
  }
  return bytes;
}

DType type_of(const Program& program, const Op& op) {
  for (const VarId id : op.vars()) {
    if (is_floating(program.var(id).dtype)) return program.var(id).dtype;
  }
  return DType::kFloat32;
}

// Of the first input, if it has several dimensions.
std::string layout_of(const Program& program, const PlannedOp& planned) {
  const std::vector<VarId>& inputs = planned.op.inputs;
  if (inputs.empty() || inputs[0] == kNoVar || program.var(inputs[0]).shape.rank() < 2) return "";
  const Layout& layout = planned.input_layouts[0];
  if (layout.is_opaque()) return "opaque";
  if (!layout.inner().empty()) return "blocked";
  return layout.is_plain() ? "plain" : "strided";
}

}  // namespace

OpCost cost_of(const Plan& plan, const PlannedOp& planned) {
  const Op& op = planned.op;
  OpCost cost{.key = op.type(),
              .layout = layout_of(plan.program, planned),
              .dtype = type_of(plan.program, op)};
  cost.bytes = bytes_of(plan, op.inputs, planned.input_layouts) +
               bytes_of(plan, op.outputs, planned.output_layouts);
  cost.operations = operations_of(plan.program, op);
  const Arithmetic* arithmetic = op.def->find_trait<Arithmetic>();
  if (arithmetic && arithmetic->kind) cost.key += " " + arithmetic->kind(plan.program, op);
  cost.key += std::string(" ") + name_of(cost.dtype);
  return cost;
}

}  // namespace fleet
