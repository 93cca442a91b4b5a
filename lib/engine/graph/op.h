// Operations: attributes, an operation in a Program, and the definition that all operations of a
// type share.
#pragma once

#include <any>
#include <functional>
#include <map>
#include <string>
#include <typeindex>
#include <utility>
#include <variant>
#include <vector>

#include "base/registry.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace fleet {

// Properties that passes and backends need of an operation besides its definition, such as its
// class under mixed precision. A trait is a struct in a header of the module that gives it a
// meaning, and an operation adds it in its own file:
//   FLEET_OP(relu) { def.add_trait<MixedPrecision>().precision = Precision::kGray; }
// Stored by type; graph/ knows none of them. Not thread-safe while traits are added, which ends
// before main().
class OpTraits {
 public:
  // The trait, default-constructed by the first call.
  template <typename Trait>
  Trait& add() {
    std::any& slot = by_type_[typeid(Trait)];
    if (!slot.has_value()) slot = Trait();
    return *std::any_cast<Trait>(&slot);
  }
  // Null if the operation does not have it.
  template <typename Trait>
  const Trait* find() const {
    const auto found = by_type_.find(typeid(Trait));
    return found == by_type_.end() ? nullptr : std::any_cast<Trait>(&found->second);
  }

 private:
  std::map<std::type_index, std::any> by_type_;
};

using VarId = int;
inline constexpr VarId kNoVar = -1;  // an absent optional input or output

using Attribute = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>,
                               std::vector<double>, std::vector<std::string>>;
std::string text_of(const Attribute& attribute);
const char* type_name_of(const Attribute& attribute);  // "integer", "list of numbers"
// What to do about an unknown attribute: the known ones, and the nearest of them.
std::string attribute_suggestion(const std::string& name,
                                 const std::map<std::string, Attribute>& known);

// Named constants of an operation. A getter with the wrong type or an unknown name is kUsage: an
// operation may be a user's.
class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<const std::string, Attribute>> values)
      : values_(values) {}
  void set(const std::string& name, Attribute value) { values_[name] = std::move(value); }
  bool has(const std::string& name) const { return values_.contains(name); }
  bool boolean(const std::string& name) const { return get<bool>(name); }
  int64_t integer(const std::string& name) const { return get<int64_t>(name); }
  double number(const std::string& name) const { return get<double>(name); }
  const std::string& text(const std::string& name) const { return get<std::string>(name); }
  const std::vector<int64_t>& integers(const std::string& name) const {
    return get<std::vector<int64_t>>(name);
  }
  const std::vector<double>& numbers(const std::string& name) const {
    return get<std::vector<double>>(name);
  }
  const std::vector<std::string>& texts(const std::string& name) const {
    return get<std::vector<std::string>>(name);
  }
  const std::map<std::string, Attribute>& all() const { return values_; }

 private:
  template <typename T>
  const T& get(const std::string& name) const;
  std::map<std::string, Attribute> values_;
};

struct OpDef;

// Part of a Program; runs when its section runs. Inputs and outputs are in the order of the
// definition's slots.
struct Op {
  const OpDef* def = nullptr;
  std::vector<VarId> inputs, outputs;
  Attributes attributes;
  int section = 0;
  int stream = 0;  // 0 computes; others run in parallel, ordered by data dependencies
  // Also starts after the last operations that wrote these, without reading them.
  std::vector<VarId> after = {};
  const std::string& type() const;
  // The variables of its inputs, of its outputs, and both; without arguments that are left out.
  std::vector<VarId> reads() const;
  std::vector<VarId> writes() const;
  std::vector<VarId> vars() const;
};

enum class Slot {
  kRequired,
  kOptional,  // may be kNoVar
  kVariadic,  // any number (at least one); last slot only
};

struct SlotDef {
  std::string name;
  Slot kind = Slot::kRequired;
  bool integer = false;  // ids, labels or keys, next to the numbers of other slots
};

class ShapeContext;
class GradientContext;

struct OpDef {
  std::string type;
  std::string help;  // one sentence, for docs/reference/operations.md; "": not for networks
  std::vector<SlotDef> inputs, outputs;
  std::map<std::string, Attribute> attributes;  // all attributes with their defaults
  std::function<void(ShapeContext&)> infer;     // sets shape and type of the outputs
  std::function<void(GradientContext&)>
      gradient;  // appends the backward operations; null: not differentiable
  // Output o may take the memory of input i: {i, o}. An updated state is passed as both.
  std::vector<std::pair<int, int>> inplace;
  OpTraits traits;

  template <typename Trait>
  Trait& add_trait() {
    return traits.add<Trait>();
  }
  // Null if the operation does not have it.
  template <typename Trait>
  const Trait* find_trait() const {
    return traits.find<Trait>();
  }
  bool has_variadic_inputs() const;
  bool has_variadic_outputs() const;
};

Registry<OpDef>& op_registry();
bool register_op(const std::string& type, void (*define)(OpDef&));

// FLEET_OP(relu) { def.inputs = ...; } in lib/engine/ops/relu.cc defines and registers an
// operation.
#define FLEET_OP(name) FLEET_REGISTER(op_##name, ::fleet::OpDef& def, ::fleet::register_op, #name)

// Shapes as attributes: a gradient operation that needs only the shape of a forward variable stores
// it this way, so that the variable need not stay live.
inline std::vector<int64_t> to_attribute(const Shape& shape) {
  return {shape.begin(), shape.end()};
}
inline Shape to_shape(const std::vector<int64_t>& dims) {
  return Shape(std::span<const int64_t>(dims));
}

// Element types as attributes, stored by name: "float32". kUsage for other texts.
DType to_dtype(const std::string& name);

}  // namespace fleet
