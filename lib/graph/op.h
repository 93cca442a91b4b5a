// Operations: attributes, an operation in a Program, and the definition all operations of a type
// share.
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
inline constexpr VarId kNoVar = -1;  // an optional input or output that is not there

using Attribute = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>,
                               std::vector<double>, std::vector<std::string>>;
std::string text_of(const Attribute& attribute);

// Named constants of an operation. A getter of another type than the value's, or of an unknown
// name, is kInternal.
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

// Part of a Program: runs where its section runs. Inputs and outputs are in the order of the
// definition's slots.
struct Op {
  const OpDef* def = nullptr;
  std::vector<VarId> inputs, outputs;
  Attributes attributes;
  int section = 0;
  int stream = 0;  // 0 computes; others run beside it, ordered by what they read and write
  const std::string& type() const;
};

enum class Slot {
  kRequired,
  kOptional,  // may be kNoVar
  kVariadic,  // any number (at least one), only as the last
};

struct SlotDef {
  std::string name;
  Slot kind = Slot::kRequired;
};

// How an operation behaves under mixed precision (the lists of Paddle's AMP): white runs in the low
// type, black in float32, gray follows its inputs.
enum class Precision { kWhite, kBlack, kGray };

class ShapeContext;
class GradientContext;
class ElementwiseContext;

struct OpDef {
  std::string type;
  std::vector<SlotDef> inputs, outputs;
  std::map<std::string, Attribute> attributes;  // every attribute there is, with its default
  std::function<void(ShapeContext&)> infer;     // sets shape and type of the outputs
  std::function<void(GradientContext&)>
      gradient;  // appends the backward operations; null: not differentiable
  Precision precision = Precision::kBlack;
  // Inputs that stay float32 also where the operation runs in a low type (statistics, scale, bias).
  std::vector<int> float32_inputs;
  // An activation: elementwise, y of x, that other operations may take in through their attribute
  // "activation".
  bool is_activation = false;
  std::vector<std::string> fuses_activations;  // which ones this operation takes in so
  // Each element of the outputs is this arithmetic on the same element of the inputs
  // (graph/elementwise.h): the pass fuse_elementwise joins such operations. Null: it is not so.
  std::function<void(ElementwiseContext&)> elementwise;
  // Output o may take the memory of input i: {i, o}. For a state that is updated, the same variable
  // is given as both.
  std::vector<std::pair<int, int>> inplace;
  // The variadic inputs and outputs come in groups, a group a tensor, of these members in this
  // order: an update of parameters. Operations that are alike in everything else can be merged into
  // one (the pass fuse_all_optimizer_ops).
  std::vector<std::string> input_group, output_group;
  // All inputs lie side by side in memory the communicator gives, in order (a bucket of gradients).
  bool contiguous_inputs = false;
  bool is_collective = false;  // ranks meet in it: their order is compared before step 1

  int slot_of_input(int index) const;  // variadic inputs share the last slot
  bool has_variadic_inputs() const;
  bool has_variadic_outputs() const;
};

Registry<OpDef>& op_registry();
bool register_op(const std::string& type, void (*define)(OpDef&));

// FLEET_OP(relu) { def.inputs = ...; } in lib/ops/relu.cc defines and registers an operation.
#define FLEET_OP(name)                                      \
  static void define_op_##name(::fleet::OpDef& def);        \
  [[maybe_unused]] static const bool registered_op_##name = \
      ::fleet::register_op(#name, define_op_##name);        \
  static void define_op_##name(::fleet::OpDef& def)

}  // namespace fleet
