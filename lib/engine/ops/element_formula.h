// Elementwise operations as arithmetic on one element: the description that an operation gives of
// itself (trait Elementwise, read by the pass fuse_elementwise), and the formula that several of
// them form together, which backends compute in one kernel (operation fused_elementwise).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graph/program.h"

namespace fleet {

// The computation of one step of a formula, in float, on the values a, b, c and the numbers p, q.
enum class ElementCode : int {
  kInput,         // input `a` of the formula
  kScale,         // a * p + q
  kAdd,           // a + b
  kSubtract,      // a - b
  kMultiply,      // a * b
  kMultiplyAdd,   // a * b + c, with one rounding if the processor supports it
  kMultiplyPlus,  // a * b + q, likewise
  kClamp,         // a, limited to [p, q]
  kWhereAbove,    // b where a > p or NaN, else 0
  kWhereBelow,    // b where a < q or NaN, else 0
  kWhereWithin,   // b where p <= a <= q, else 0
  kTanh,
  kSigmoid,
  kExp,
  kErf,
  kBFloat16,  // a rounded to bfloat16
  kFloat16,   // a rounded to float16
};
const char* name_of(ElementCode code);

// Operands are value numbers: step v computes value v.
struct ElementStep {
  ElementCode code = ElementCode::kInput;
  int a = -1, b = -1, c = -1;
  double p = 0, q = 0;
  std::string text() const;  // "scale 0 by 2 plus 1"
  bool operator==(const ElementStep&) const = default;
};

// An input whose shape differs from the outputs' is broadcast over it along `axis`
// (ops/broadcast.h).
struct ElementFormula {
  std::vector<ElementStep> steps;
  std::vector<int64_t> axes;  // by input
  std::vector<int> results;   // by output: its value

  // Returns the value; that of an identical earlier step if one exists.
  int append(const ElementStep& step);
  // The results for these inputs, in float like the kernels, except for the last bits of functions.
  std::vector<float> evaluate(const std::vector<float>& inputs) const;
  // Whether padding elements stay zero.
  bool maps_zeros_to_zeros() const;
};

// Converts to and from an operation's attributes "steps", "axes", "results".
void to_attributes(const ElementFormula& formula, Attributes& attributes);
ElementFormula formula_of(const Attributes& attributes);
// Attributes of a fused_elementwise operation of that shape, with outputs of these types.
Attributes fused_attributes(const ElementFormula& formula, const Shape& shape,
                            const std::vector<DType>& types);

// The argument of Elementwise::formula: the operation computes values from its inputs and sets its
// outputs. All outputs have one shape; inputs have it too or are broadcast over it. An operation
// that does not set all its outputs (in this form) counts as not elementwise.
class ElementwiseContext {
 public:
  using Value = int;
  // values: variables that already have a value in the formula; the outputs are added. Inputs
  // without a value are appended to `inputs` and to the formula's inputs.
  ElementwiseContext(const Program& program, const Op& op, ElementFormula& formula,
                     std::map<VarId, Value>& values, std::vector<VarId>& inputs);

  const Attributes& attributes() const { return op_.attributes; }
  int input_count() const { return static_cast<int>(op_.inputs.size()); }
  bool has_input(int i) const { return i < input_count() && op_.inputs[i] != kNoVar; }
  bool has_output(int i) const {
    return i < static_cast<int>(op_.outputs.size()) && op_.outputs[i] != kNoVar;
  }
  const Shape& shape(int input) const { return program_.var(op_.inputs[input]).shape; }

  Value input(int i, int64_t axis = -1);
  // Rounds to the type of the output's variable.
  void output(int i, Value value);

  // Appends any step on values of this formula.
  Value step(const ElementStep& step) { return formula_.append(step); }
  Value scale(Value a, double factor, double plus = 0);
  Value add(Value a, Value b) { return step({.code = ElementCode::kAdd, .a = a, .b = b}); }
  Value subtract(Value a, Value b) {
    return step({.code = ElementCode::kSubtract, .a = a, .b = b});
  }
  Value multiply(Value a, Value b) {
    return step({.code = ElementCode::kMultiply, .a = a, .b = b});
  }
  Value multiply_add(Value a, Value b, Value c) {
    return step({.code = ElementCode::kMultiplyAdd, .a = a, .b = b, .c = c});
  }
  Value multiply_plus(Value a, Value b, double plus) {
    return step({.code = ElementCode::kMultiplyPlus, .a = a, .b = b, .q = plus});
  }
  Value clamp(Value a, double low, double high) {
    return step({.code = ElementCode::kClamp, .a = a, .p = low, .q = high});
  }
  Value where_above(Value a, double bound, Value b) {
    return step({.code = ElementCode::kWhereAbove, .a = a, .b = b, .p = bound});
  }
  Value where_below(Value a, double bound, Value b) {
    return step({.code = ElementCode::kWhereBelow, .a = a, .b = b, .q = bound});
  }
  Value where_within(Value a, double low, double high, Value b) {
    return step({.code = ElementCode::kWhereWithin, .a = a, .b = b, .p = low, .q = high});
  }
  Value tanh(Value a) { return step({.code = ElementCode::kTanh, .a = a}); }
  Value sigmoid(Value a) { return step({.code = ElementCode::kSigmoid, .a = a}); }
  Value exp(Value a) { return step({.code = ElementCode::kExp, .a = a}); }
  Value erf(Value a) { return step({.code = ElementCode::kErf, .a = a}); }

 private:
  Value rounded(Value value, DType dtype);

  const Program& program_;
  const Op& op_;
  ElementFormula& formula_;
  std::map<VarId, Value>& values_;
  std::vector<VarId>& inputs_;
};

// The trait of elementwise operations: arithmetic on one element of the inputs that gives the same
// element of the outputs.
struct Elementwise {
  std::function<void(ElementwiseContext&)> formula;
};
inline bool is_elementwise(const Op& op) { return op.def->find_trait<Elementwise>() != nullptr; }

// Adds an operation to a formula. Returns false and adds nothing if it is not elementwise. inputs,
// values: see ElementwiseContext.
bool add_to_formula(const Program& program, const Op& op, ElementFormula& formula,
                    std::map<VarId, int>& values, std::vector<VarId>& inputs);

// A formula for a register machine: each step writes register `target`, and operands are registers
// (for an input: its number). Results stay in their registers to the end.
struct ElementCodeLine {
  ElementCode code = ElementCode::kInput;
  int target = 0, a = 0, b = 0, c = 0;
  float p = 0, q = 0;
};
struct ElementProgram {
  std::vector<ElementCodeLine> lines;
  std::vector<int> results;  // by output: its register
  int registers = 0;
};
ElementProgram assign_registers(const ElementFormula& formula);

// Limit of every backend's kernel.
inline constexpr int kMaxElementRegisters = 20;
inline constexpr int kMaxElementLines = 64;
inline constexpr int kMaxElementInputs = 12;
inline constexpr int kMaxElementOutputs = 12;

}  // namespace fleet
