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

// Caches relations between sections, computed once per pair: a Program has many variables and few
// sections.
class Sections {
 public:
  explicit Sections(const Program& program) : sections_(program.sections()) {}

  // Whether one of `writers` runs whenever `reader` does; false if `writers` is empty.
  bool cover(const std::vector<SectionId>& writers, SectionId reader) {
    if (writers.empty()) return false;
    if (std::find(writers.begin(), writers.end(), reader) != writers.end()) return true;
    const auto [known, fresh] = covered_.try_emplace({writers, reader}, false);
    if (fresh) {
      std::vector<Predicate> any;
      for (const SectionId writer : writers) any.push_back(sections_[writer].when);
      known->second = fleet::cover(any, sections_[reader].when);
    }
    return known->second;
  }
  // Whether `section` never runs together with one of `others`.
  bool exclude(const std::vector<SectionId>& others, SectionId section) {
    return std::all_of(others.begin(), others.end(), [&](SectionId other) {
      if (other == section) return false;
      const auto [known, fresh] = excluded_.try_emplace({other, section}, false);
      if (fresh) known->second = fleet::exclude(sections_[other].when, sections_[section].when);
      return known->second;
    });
  }

 private:
  const std::vector<Section>& sections_;
  std::map<std::pair<std::vector<SectionId>, SectionId>, bool> covered_;
  std::map<std::pair<SectionId, SectionId>, bool> excluded_;
};

}  // namespace

void verify(const Program& program) {
  Sections sections(program);
  std::map<VarId, std::vector<SectionId>> written;  // temporary -> sections that wrote it
  for (const Op& op : program.ops()) {
    check_slots(program, op, op.def->inputs, op.inputs, "input");
    check_slots(program, op, op.def->outputs, op.outputs, "output");
    for (VarId id : op.inputs) {
      if (id == kNoVar || program.var(id).kind != VarKind::kTemporary) continue;
      if (!sections.cover(written[id], op.section)) {
        broken(program, op, "reads '" + program.var(id).name + "' before it is set");
      }
    }
    for (VarId id : op.writes()) {
      const Var& var = program.var(id);
      if (!var.shape_known) broken(program, op, "no shape was inferred for '" + var.name + "'");
      if (var.kind == VarKind::kFeed) broken(program, op, "writes the feed '" + var.name + "'");
      const bool updates = std::find(op.inputs.begin(), op.inputs.end(), id) != op.inputs.end();
      if (var.kind == VarKind::kTemporary) {
        if (!updates && !sections.exclude(written[id], op.section)) {
          broken(program, op, "writes '" + var.name + "' a second time");
        }
        std::vector<SectionId>& by = written[id];
        if (std::find(by.begin(), by.end(), op.section) == by.end()) by.push_back(op.section);
      }
    }
  }
}

}  // namespace fleet
