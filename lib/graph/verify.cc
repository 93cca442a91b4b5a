#include <algorithm>
#include <map>

#include "graph/program.h"

namespace fleet {
namespace {

[[noreturn]] void broken(const Program& program, const Op& op, const std::string& what) {
  const VarId first = op.outputs.empty() ? kNoVar : op.outputs[0];
  const std::string name = first == kNoVar ? "" : " '" + program.var(first).name + "'";
  throw Error(ErrorCode::kInternal, what, "operation " + op.type() + name);
}

void check_slots(const Program& program, const Op& op, const std::vector<SlotDef>& slots,
                 const std::vector<VarId>& vars, const char* side) {
  for (size_t i = 0; i < slots.size(); ++i) {
    const bool there = i < vars.size() && vars[i] != kNoVar;
    if (!there && slots[i].kind != Slot::kOptional) {
      broken(program, op, std::string(side) + " '" + slots[i].name + "' is missing");
    }
  }
}

}  // namespace

void verify(const Program& program) {
  std::map<VarId, std::vector<int>> written;  // temporary -> sections that wrote it
  for (const Op& op : program.ops()) {
    check_slots(program, op, op.def->inputs, op.inputs, "input");
    check_slots(program, op, op.def->outputs, op.outputs, "output");
    const Predicate& when = program.sections()[op.section].when;
    for (VarId id : op.inputs) {
      if (id == kNoVar || program.var(id).kind != VarKind::kTemporary) continue;
      bool set = false;
      for (int section : written[id]) set |= program.sections()[section].when.covers(when);
      if (!set) broken(program, op, "reads '" + program.var(id).name + "' before it is set");
    }
    for (VarId id : op.outputs) {
      if (id == kNoVar) continue;
      const Var& var = program.var(id);
      if (!var.shape_known) broken(program, op, "no shape was inferred for '" + var.name + "'");
      if (var.kind == VarKind::kFeed) broken(program, op, "writes the feed '" + var.name + "'");
      const bool updates = std::find(op.inputs.begin(), op.inputs.end(), id) != op.inputs.end();
      if (var.kind == VarKind::kTemporary) {
        if (!written[id].empty() && !updates) {
          broken(program, op, "writes '" + var.name + "' a second time");
        }
        written[id].push_back(op.section);
      }
    }
  }
}

}  // namespace fleet
