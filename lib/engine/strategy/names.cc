#include "strategy/names.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "proto/strategy.pb.h"

namespace fleet {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FieldOptions;

const Descriptor& strategy_type() { return *paddle::fleet::DistributedStrategy::descriptor(); }

// The field of this message that a typed name refers to.
const FieldDescriptor* field_of(const Descriptor& message, const std::string& name) {
  if (const FieldDescriptor* field = message.FindFieldByName(name)) return field;
  for (int i = 0; i < message.field_count(); ++i) {
    const std::vector<std::string> names = other_names(*message.field(i));
    if (std::count(names.begin(), names.end(), name) > 0) return message.field(i);
  }
  return name.starts_with('_') ? message.FindFieldByName(name.substr(1)) : nullptr;
}

bool is_flat(const FieldDescriptor& field) {
  return field.options().GetExtension(paddle::fleet::flat);
}

// The path of a name within a flat message.
std::string path_within_flat(const std::string& name) {
  for (int i = 0; i < strategy_type().field_count(); ++i) {
    const FieldDescriptor& outer = *strategy_type().field(i);
    if (!is_flat(outer)) continue;
    const FieldDescriptor* field = field_of(*outer.message_type(), name);
    if (field) return outer.name() + "." + field->name();
  }
  return {};
}

// The path of a name at the top level of the strategy.
std::string path_on_top(const std::string& name) {
  const FieldDescriptor* field = field_of(strategy_type(), name);
  return field ? field->name() : path_within_flat(name);
}

// The path of one of our names of a field in a flat message.
std::string path_in_flat(const std::string& name) {
  const FieldDescriptor* field = strategy_type().FindFieldByName(name);
  const bool within = field && field->options().GetExtension(paddle::fleet::within);
  return within ? name : path_within_flat(name);
}

std::vector<const FieldDescriptor*> by_number(const Descriptor& message) {
  std::vector<const FieldDescriptor*> fields;
  for (int i = 0; i < message.field_count(); ++i) fields.push_back(message.field(i));
  std::sort(fields.begin(), fields.end(), [](const FieldDescriptor* a, const FieldDescriptor* b) {
    return a->number() < b->number();
  });
  return fields;
}

// Appends the paths of all messages, or else of all fields with values.
void collect_paths(const Descriptor& message, const std::string& prefix, bool messages,
                   std::vector<std::string>* paths) {
  for (const FieldDescriptor* field : by_number(message)) {
    const std::string path = prefix + field->name();
    const Descriptor* type = field->message_type();
    if ((type != nullptr) == messages) paths->push_back(path);
    if (type) collect_paths(*type, path + ".", messages, paths);
  }
}

}  // namespace

const FieldDescriptor* find_field(const std::string& path) {
  const Descriptor* type = &strategy_type();
  const FieldDescriptor* field = nullptr;
  for (const std::string& name : split(path, '.')) {
    field = type ? type->FindFieldByName(name) : nullptr;
    if (!field) return nullptr;
    type = field->message_type();  // null behind a scalar
  }
  return field;
}

std::vector<std::string> other_names(const FieldDescriptor& field) {
  const FieldOptions& options = field.options();
  std::vector<std::string> names;
  for (int i = 0; i < options.ExtensionSize(paddle::fleet::also); ++i) {
    names.push_back(options.GetExtension(paddle::fleet::also, i));
  }
  return names;
}

std::vector<std::string> enum_names(const FieldDescriptor& field) {
  std::vector<std::string> names;
  for (int i = 0; i < field.enum_type()->value_count(); ++i) {
    names.push_back(field.enum_type()->value(i)->name());
  }
  return names;
}

const std::vector<std::string>& field_paths() {
  static const std::vector<std::string> paths = [] {
    std::vector<std::string> all;
    collect_paths(strategy_type(), "", false, &all);
    return all;
  }();
  return paths;
}

std::string resolve_field_name(const std::string& typed) {
  const std::vector<std::string> names = split(typed, '.');
  if (names.empty()) return {};
  if (names.size() == 1) return path_on_top(names[0]);
  const FieldDescriptor* outer = field_of(strategy_type(), names[0]);
  if (!outer || !outer->message_type()) return {};
  std::string path = outer->name();
  const Descriptor* type = outer->message_type();
  for (size_t i = 1; i < names.size(); ++i) {
    const FieldDescriptor* field = type ? field_of(*type, names[i]) : nullptr;
    if (!field) return names.size() == 2 && is_flat(*outer) ? path_in_flat(names[1]) : "";
    path += "." + field->name();
    type = field->message_type();
  }
  return path;
}

std::string field_suggestion(const std::string& typed) {
  std::vector<std::string> known = field_paths();
  collect_paths(strategy_type(), "", true, &known);
  const std::string likely = path_suggestion(typed, known);
  return likely.empty() ? "fleet-worker JOB --print_keys lists the fields" : likely;
}

// The outermost field on the way to `path` that is `later`; null if none.
static const FieldDescriptor* later_field(const std::string& path) {
  for (size_t dot = path.find('.');; dot = path.find('.', dot + 1)) {
    const FieldDescriptor* field = find_field(path.substr(0, dot));
    if (field && field->options().GetExtension(paddle::fleet::later)) return field;
    if (dot == std::string::npos) return nullptr;
  }
}

bool is_unsupported_field(const std::string& path) { return later_field(path) != nullptr; }

bool is_opaque_message(const std::string& path) {
  const FieldDescriptor* field = find_field(path);
  return field && field->message_type() == paddle::fleet::Elsewhere::descriptor();
}

std::string first_release(const std::string& path) {
  const FieldDescriptor* field = later_field(path);
  const int since = field ? field->options().GetExtension(paddle::fleet::since) : 20;
  return "Paddle " + std::to_string(since / 10) + "." + std::to_string(since % 10);
}

std::string range_of(const FieldDescriptor& field) {
  const FieldOptions& options = field.options();
  const auto text = [](double value) { return std::to_string(std::llround(value)); };
  const bool least = options.HasExtension(paddle::fleet::least);
  const bool most = options.HasExtension(paddle::fleet::most);
  const std::string low = least ? text(options.GetExtension(paddle::fleet::least)) : "";
  const std::string high = most ? text(options.GetExtension(paddle::fleet::most)) : "";
  if (least && most) return "from " + low + " to " + high;
  return least ? "at least " + low : most ? "at most " + high : "";
}

bool in_range(const FieldDescriptor& field, double value) {
  const FieldOptions& options = field.options();
  if (options.HasExtension(paddle::fleet::least) &&
      value < options.GetExtension(paddle::fleet::least)) {
    return false;
  }
  return !options.HasExtension(paddle::fleet::most) ||
         value <= options.GetExtension(paddle::fleet::most);
}

std::string value_requirement(const FieldDescriptor& field) {
  const std::string range = range_of(field);
  const std::string bounds = range.empty() ? "" : ", " + range;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_INT32:
      return "an integer" + (range.empty() ? ", from -2147483648 to 2147483647" : bounds);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return "a number" + bounds;
    case FieldDescriptor::CPPTYPE_ENUM:
      return "one of " + join(enum_names(field), ", ");
    default:
      return "a string in quotes";
  }
}

int named_value(const FieldDescriptor& field, const std::string& name) {
  const std::string last = name.substr(name.rfind('.') + 1);
  const FieldOptions& options = field.options();
  for (int i = 0; i < options.ExtensionSize(paddle::fleet::names); ++i) {
    if (options.GetExtension(paddle::fleet::names, i) == last) return i;
  }
  return -1;
}

}  // namespace fleet
