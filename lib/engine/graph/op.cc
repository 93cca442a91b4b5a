#include "graph/op.h"

#include <sstream>

#include "base/text.h"

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

const char* type_name_of(const Attribute& attribute) {
  constexpr const char* kNames[] = {
      "bool", "integer", "number", "text", "list of integers", "list of numbers", "list of texts"};
  static_assert(std::variant_size_v<Attribute> == std::size(kNames));
  return kNames[attribute.index()];
}

std::string attribute_suggestion(const std::string& name,
                                 const std::map<std::string, Attribute>& known) {
  if (known.empty()) return "it has no attributes";
  std::vector<std::string> names;
  for (const auto& [other, value] : known) names.push_back(other);
  const std::string nearest = nearest_name(name, names);
  return (nearest.empty() ? "" : "did you mean '" + nearest + "'? ") + std::string("known: ") +
         join(names, ", ");
}

DType to_dtype(const std::string& name) {
  std::vector<std::string> names;
  for (int i = 0; i <= static_cast<int>(DType::kUInt8); ++i) {
    names.emplace_back(name_of(static_cast<DType>(i)));
    if (name == names.back()) return static_cast<DType>(i);
  }
  throw Error(ErrorCode::kUsage, "there is no element type '" + name + "'", {},
              suggestion(name, names));
}

template <typename T>
const T& Attributes::get(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) {
    throw Error(ErrorCode::kUsage, "there is no attribute '" + name + "'", {},
                attribute_suggestion(name, values_));
  }
  const T* value = std::get_if<T>(&found->second);
  if (!value) {
    throw Error(ErrorCode::kUsage,
                "attribute '" + name + "' is read as another type, " + type_name_of(Attribute(T())),
                {}, std::string("its type is ") + type_name_of(found->second));
  }
  return *value;
}
template const bool& Attributes::get(const std::string&) const;
template const int64_t& Attributes::get(const std::string&) const;
template const double& Attributes::get(const std::string&) const;
template const std::string& Attributes::get(const std::string&) const;
template const std::vector<int64_t>& Attributes::get(const std::string&) const;
template const std::vector<double>& Attributes::get(const std::string&) const;
template const std::vector<std::string>& Attributes::get(const std::string&) const;

static std::vector<VarId> given(std::vector<VarId> ids) {
  std::erase(ids, kNoVar);
  return ids;
}
std::vector<VarId> Op::reads() const { return given(inputs); }
std::vector<VarId> Op::writes() const { return given(outputs); }
std::vector<VarId> Op::vars() const {
  std::vector<VarId> all = inputs;
  all.insert(all.end(), outputs.begin(), outputs.end());
  return given(std::move(all));
}

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
