#include "graph/op.h"

#include <sstream>

namespace fleet {
namespace {

template <typename T>
std::string text_of_list(const std::vector<T>& list) {
  std::ostringstream out;
  out << "[";
  for (size_t i = 0; i < list.size(); ++i) out << (i ? ", " : "") << list[i];
  out << "]";
  return out.str();
}

struct TextOf {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const {
    std::ostringstream out;
    out << value;
    return out.str();
  }
  std::string operator()(const std::string& value) const { return "\"" + value + "\""; }
  template <typename T>
  std::string operator()(const std::vector<T>& value) const {
    return text_of_list(value);
  }
};

}  // namespace

std::string text_of(const Attribute& attribute) { return std::visit(TextOf(), attribute); }

template <typename T>
const T& Attributes::get(const std::string& name) const {
  const auto found = values_.find(name);
  FLEET_CHECK(found != values_.end(), "no attribute '" + name + "'");
  const T* value = std::get_if<T>(&found->second);
  FLEET_CHECK(value, "attribute '" + name + "' has another type: " + text_of(found->second));
  return *value;
}
template const bool& Attributes::get(const std::string&) const;
template const int64_t& Attributes::get(const std::string&) const;
template const double& Attributes::get(const std::string&) const;
template const std::string& Attributes::get(const std::string&) const;
template const std::vector<int64_t>& Attributes::get(const std::string&) const;
template const std::vector<double>& Attributes::get(const std::string&) const;
template const std::vector<std::string>& Attributes::get(const std::string&) const;

const std::string& Op::type() const { return def->type; }

bool OpDef::has_variadic_inputs() const {
  return !inputs.empty() && inputs.back().kind == Slot::kVariadic;
}

bool OpDef::has_variadic_outputs() const {
  return !outputs.empty() && outputs.back().kind == Slot::kVariadic;
}

Registry<OpDef>& op_registry() {
  static Registry<OpDef> registry("operation");
  return registry;
}

bool register_op(const std::string& type, void (*define)(OpDef&)) {
  return op_registry().define(type, define, {.type = type});
}

}  // namespace fleet
