// Operations: attributes, an operation in a Program, and the definition that all operations of a
// type share.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/registry.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace fleet {

using VarId = int;
inline constexpr VarId kNoVar = -1;  // an absent optional input or output

using Attribute = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>,
                               std::vector<double>, std::vector<std::string>>;
std::string text_of(const Attribute& attribute);

// Named constants of an operation. A getter with the wrong type or an unknown name is kInternal.
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
  const std::string& type() const;
};

enum class Slot {
  kRequired,
  kOptional,  // may be kNoVar
  kVariadic,  // any number (at least one); last slot only
};

struct SlotDef {
  std::string name;
  Slot kind = Slot::kRequired;
};

// Behaviour under mixed precision (the lists of Paddle's AMP): white runs in the low type, black in
// float32, gray follows its inputs.
enum class Precision { kWhite, kBlack, kGray };

class ShapeContext;
class GradientContext;
class ElementwiseContext;

struct OpDef {
  std::string type;
  std::vector<SlotDef> inputs, outputs;
  std::map<std::string, Attribute> attributes;  // all attributes with their defaults
  std::function<void(ShapeContext&)> infer;     // sets shape and type of the outputs
  std::function<void(GradientContext&)>
      gradient;  // appends the backward operations; null: not differentiable
  Precision precision = Precision::kBlack;
  // Inputs that stay float32 even if the operation runs in a low type (statistics, scale, bias).
  std::vector<int> float32_inputs;
  // An elementwise activation y of x that other operations may fuse through their attribute
  // "activation".
  bool is_activation = false;
  std::vector<std::string> fuses_activations;  // activations that this operation can fuse
  // Arithmetic on one element of the inputs that gives the same element of the outputs
  // (graph/elementwise.h); the pass fuse_elementwise joins such operations. Null: not elementwise.
  std::function<void(ElementwiseContext&)> elementwise;
  // Output o may take the memory of input i: {i, o}. An updated state is passed as both.
  std::vector<std::pair<int, int>> inplace;
  // The variadic inputs and outputs come in groups, one per tensor, with these members in this
  // order: an update of parameters. Operations that are equal in everything else can be merged into
  // one (the pass fuse_all_optimizer_ops).
  std::vector<std::string> input_group, output_group;
  // All inputs are contiguous, in order, in memory from the communicator (a bucket of gradients).
  bool contiguous_inputs = false;
  bool is_collective = false;  // ranks synchronize in it: its order is compared before step 1

  int slot_of_input(int index) const;  // variadic inputs share the last slot
  bool has_variadic_inputs() const;
  bool has_variadic_outputs() const;
};

Registry<OpDef>& op_registry();
bool register_op(const std::string& type, void (*define)(OpDef&));

// FLEET_OP(relu) { def.inputs = ...; } in lib/engine/ops/relu.cc defines and registers an
// operation.
#define FLEET_OP(name)                                      \
  static void define_op_##name(::fleet::OpDef& def);        \
  [[maybe_unused]] static const bool registered_op_##name = \
      ::fleet::register_op(#name, define_op_##name);        \
  static void define_op_##name(::fleet::OpDef& def)

}  // namespace fleet
