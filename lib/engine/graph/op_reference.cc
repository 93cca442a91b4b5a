#include "graph/op_reference.h"

#include "base/text.h"
#include "graph/op.h"

namespace fleet {
namespace {

std::string code(const std::string& text) { return "`" + text + "`"; }

std::string slots_text(const std::vector<SlotDef>& slots) {
  std::vector<std::string> names;
  for (const SlotDef& slot : slots) {
    names.push_back(code(slot.name) + (slot.kind == Slot::kOptional   ? " (optional)"
                                       : slot.kind == Slot::kVariadic ? " (one or more)"
                                                                      : ""));
  }
  return names.empty() ? "none" : join(names, ", ");
}

std::string markdown_of(const OpDef& def) {
  std::string text = "## " + def.type + "\n\n";
  text += "- Result: " + def.help + "\n";
  text += "- Inputs: " + slots_text(def.inputs) + "\n";
  text += "- Outputs: " + slots_text(def.outputs) + "\n";
  if (def.attributes.empty()) return text;
  text += "\n| attribute | type | default |\n|---|---|---|\n";
  for (const auto& [name, value] : def.attributes) {
    text += "| " + code(name) + " | " + type_name_of(value) + " | " + code(text_of(value)) + " |\n";
  }
  return text;
}

}  // namespace

std::string operations_markdown() {
  std::string text;
  for (const std::string& name : op_registry().names()) {
    const OpDef& def = op_registry().get(name);
    if (!def.help.empty()) text += (text.empty() ? "" : "\n") + markdown_of(def);
  }
  return text;
}

}  // namespace fleet
