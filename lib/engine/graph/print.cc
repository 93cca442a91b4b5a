#include <algorithm>

#include "graph/program.h"

namespace fleet {
namespace {

std::string name_in(const Program& program, VarId id) {
  return id == kNoVar ? "-" : program.var(id).name;
}

std::string typed(const Program& program, VarId id) {
  if (id == kNoVar) return "-";
  const Var& var = program.var(id);
  return var.name + ": " + name_of(var.dtype) + var.shape.text();
}

}  // namespace

std::string print_text(const Program& program) {
  std::string text;
  for (size_t i = 0; i < program.flags().size(); ++i) {
    text += "flag " + std::to_string(i) + " is " + program.flags()[i] + "\n";
  }
  for (size_t i = 0; i < program.groups().size(); ++i) {
    text += "communicator " + std::to_string(i) + " is " + program.groups()[i].text() + "\n";
  }
  const auto list = [&](const char* title, VarKind kind) {
    for (VarId id = 0; id < program.var_count(); ++id) {
      const Var& var = program.var(id);
      if (var.kind != kind) continue;
      text += title + typed(program, id) + (var.per_rank ? ", of each rank" : "") + "\n";
    }
  };
  list("feed ", VarKind::kFeed);
  list("parameter ", VarKind::kParameter);
  list("state ", VarKind::kState);
  int section = -1;
  for (const Op& op : program.ops()) {
    if (op.section != section) {
      section = op.section;
      text += "section " + program.sections()[section].name + " (" +
              program.sections()[section].when.text() + ")\n";
    }
    text += "  ";
    const bool results =
        std::any_of(op.outputs.begin(), op.outputs.end(), [](VarId id) { return id != kNoVar; });
    for (size_t i = 0; results && i < op.outputs.size(); ++i) {
      text += (i ? ", " : "") + typed(program, op.outputs[i]);
    }
    text += (results ? " = " : "") + op.type() + "(";
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      text += (i ? ", " : "") + name_in(program, op.inputs[i]);
    }
    text += ")";
    std::string attributes;
    for (const auto& [name, value] : op.attributes.all()) {
      const auto initial = op.def->attributes.find(name);
      if (initial != op.def->attributes.end() && initial->second == value) continue;
      attributes += (attributes.empty() ? "" : ", ") + name + "=" + text_of(value);
    }
    if (!attributes.empty()) text += " {" + attributes + "}";
    if (op.stream) text += " on stream " + std::to_string(op.stream);
    text += "\n";
  }
  return text;
}

std::string print_dot(const Program& program) {
  const auto quote = [](const std::string& text) { return "\"" + text + "\""; };
  std::string text = "digraph program {\n  node [fontsize=10];\n";
  for (size_t i = 0; i < program.ops().size(); ++i) {
    const Op& op = program.ops()[i];
    const std::string node = "op" + std::to_string(i);
    text += "  " + node + " [shape=box, label=" + quote(op.type()) + "];\n";
    for (VarId id : op.reads()) text += "  " + quote(program.var(id).name) + " -> " + node + ";\n";
    for (VarId id : op.writes()) text += "  " + node + " -> " + quote(program.var(id).name) + ";\n";
  }
  return text + "}\n";
}

}  // namespace fleet
