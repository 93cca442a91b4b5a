#include "strategy/reference.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "strategy/names.h"

namespace fleet {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

using Defs = MetaOptimizerDefs;

std::string type_of(const FieldDescriptor& field) {
  const std::string many = field.is_repeated() ? "s" : "";
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return "bool" + many;
    case FieldDescriptor::CPPTYPE_INT32:
      return "integer" + many;
    case FieldDescriptor::CPPTYPE_FLOAT:
      return "number" + many;
    default:
      return "text" + many;
  }
}

std::string default_of(const FieldDescriptor& field) {
  if (field.is_repeated()) return "none";
  const Message& blank =
      *google::protobuf::MessageFactory::generated_factory()->GetPrototype(field.containing_type());
  std::string text;
  google::protobuf::TextFormat::PrintFieldValueToString(blank, &field, -1, &text);
  return text == "\"\"" ? "none" : text;
}

bool takes(const MetaOptimizerDef& def, const std::string& path) {
  return std::any_of(def.fields.begin(), def.fields.end(), [&](const std::string& field) {
    return path == field || path.starts_with(field + ".");
  });
}

const MetaOptimizerDef* owner_of(const std::string& path, const Defs& defs) {
  const MetaOptimizerDef* found = nullptr;
  for (const MetaOptimizerDef* def : defs) {
    if (!takes(*def, path)) continue;
    FLEET_CHECK(!found, path + " is taken by " + (found ? found->name : "") + " and " + def->name);
    found = def;
  }
  return found;
}

bool acts_where_unset(const FieldDescriptor& field, const MetaOptimizerDef* def) {
  return def && def->fields.size() == 1 && def->requested && def->requested({}) &&
         field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL && !field.default_value_bool();
}

// The default in readable form.
std::string shown_default(const OptionRow& row) {
  return row.initial + (row.unset_is_on ? ", unset: on" : "");
}

std::string help_of(const std::string& path, const MetaOptimizerDef* def) {
  if (is_unsupported_field(path)) return "added in " + first_release(path) + ", not implemented";
  if (!def) return "not implemented yet";
  for (size_t end = path.size(); end != std::string::npos; end = path.rfind('.', end - 1)) {
    const FieldDescriptor& field = *find_field(path.substr(0, end));
    const std::string& help = field.options().GetExtension(paddle::fleet::help);
    if (!help.empty()) return help;
  }
  const bool only = def->fields.size() == 1 && def->fields[0] == path;
  return only || path == def->name ? def->help : "";
}

// "a", "a and b", "a, b and c"
std::string listing(const std::vector<std::string>& names) {
  if (names.size() < 2) return join(names, "");
  return join(std::span(names).first(names.size() - 1), ", ") + " and " + names.back();
}

// --- pages -------------------------------------------------------------------------------------

std::string cell(std::string text) {
  for (size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2)) {
    text.replace(at, 1, "\\|");
  }
  return text;
}

std::string code(const std::string& text) { return "`" + text + "`"; }

std::string markdown_row(const OptionRow& row) {
  std::string help = row.help;
  if (!row.also.empty()) help += "; also accepted as " + listing(row.also);
  const std::string type = row.type + (row.range.empty() ? "" : ", " + row.range);
  return "| " + code(row.path) + " | " + type + " | " + code(cell(shown_default(row))) + " | " +
         cell(help) + " |\n";
}

// The outermost message of a later release that contains the field; "" if none.
std::string later_message(const std::string& path) {
  for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1)) {
    if (is_unsupported_field(path.substr(0, dot))) return path.substr(0, dot);
  }
  return "";
}

constexpr const char* kHeader = "| option | type | default | what it does |\n|---|---|---|---|\n";

std::string markdown_of(const MetaOptimizerDef& def, const std::vector<OptionRow>& rows) {
  std::string text = "### " + def.name + "\n\n";
  text += static_cast<char>(std::toupper(static_cast<unsigned char>(def.help[0])));
  text += def.help.substr(1) + ".\n\n";
  const auto line = [&](const char* what, const std::string& value) {
    if (!value.empty()) text += std::string("- ") + what + ": " + value + "\n";
  };
  line("When", def.when);
  line("Cost", def.cost);
  line("Can be combined with", compatibility_text(def));
  line("Measured", def.figure);
  text += std::string("\n") + kHeader;
  for (const OptionRow& row : rows) {
    if (row.def == &def) text += markdown_row(row);
  }
  return text + "\n";
}

}  // namespace

std::vector<OptionRow> option_rows() {
  const Defs defs = meta_optimizers_by_position();
  std::vector<OptionRow> rows;
  for (const std::string& path : field_paths()) {
    const FieldDescriptor& field = *find_field(path);
    OptionRow row{.path = path,
                  .type = type_of(field),
                  .initial = default_of(field),
                  .range = range_of(field),
                  .also = other_names(field),
                  .def = owner_of(path, defs)};
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM) row.range = value_requirement(field);
    row.help = help_of(path, row.def);
    row.unset_is_on = acts_where_unset(field, row.def);
    if (is_unsupported_field(path)) row.def = nullptr;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string compatibility_text(const MetaOptimizerDef& def) {
  if (def.divide) return "all others except those that it refuses by name";
  if (def.paddle_class.empty()) return "all others";
  std::vector<std::string> wrapped, wraps_it;
  for (const MetaOptimizerDef* other : meta_optimizers_by_position()) {
    const auto has = [](const MetaOptimizerDef& outer, const std::string& inner) {
      return std::find(outer.wraps.begin(), outer.wraps.end(), inner) != outer.wraps.end();
    };
    if (has(def, other->name)) wrapped.push_back(other->name);
    if (has(*other, def.name)) wraps_it.push_back(other->name);
  }
  std::string text;
  if (!wrapped.empty()) text += "it wraps " + listing(wrapped);
  if (!wraps_it.empty()) {
    text += std::string(text.empty() ? "" : "; ") + listing(wraps_it) + " wrap" +
            (wraps_it.size() == 1 ? "s" : "") + " it";
  }
  if (text.empty()) text = "none of those that compete";
  return text +
         "; if it competes with others, the longest chain wins, and a log line names the loser";
}

std::string reference_text() {
  std::string text;
  for (const OptionRow& row : option_rows()) {
    text += row.path + " = " + shown_default(row);
    text += "  (" + (row.def ? row.def->name : std::string("default only")) + ") " + row.help;
    if (!row.range.empty()) text += ", " + row.range;
    if (!row.also.empty()) text += "; also " + join(row.also, ", ");
    text += "\n";
  }
  return text;
}

std::string reference_markdown() {
  const std::vector<OptionRow> rows = option_rows();
  std::string text =
      "## Options\n\n"
      "Each meta-optimizer has a heading, in the order in which they rewrite the Program. Most of "
      "those that do not change it come first.\n\n";
  for (const MetaOptimizerDef* def : meta_optimizers_by_position()) {
    const bool any =
        std::any_of(rows.begin(), rows.end(), [&](const OptionRow& row) { return row.def == def; });
    if (any) text += markdown_of(*def, rows);
  }
  text += std::string(
              "## Accepted at their defaults only\n\n"
              "Any other value is rejected, with an error that names the option.\n\n") +
          kHeader;
  std::set<std::string> messages;  // from later releases, one row each
  for (const OptionRow& row : rows) {
    if (row.def) continue;
    const std::string message = later_message(row.path);
    if (message.empty()) {
      text += markdown_row(row);
    } else if (messages.insert(message).second) {
      text += "| " + code(message + ".*") + " | | | " + row.help + " |\n";
    }
  }
  return text;
}

}  // namespace fleet
