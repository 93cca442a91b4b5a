// Elementwise operations as arithmetic on one element: what an operation says of itself
// (OpDef::elementwise), and the formula that several of them make together, which backends compute
// in one kernel (operation fused_elementwise).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/program.h"

namespace fleet {

// What one step of a formula computes, in float, of the values a, b, c and the numbers p, q.
enum class ElementCode : int {
  kInput,         // input `a` of the formula
  kScale,         // a * p + q
  kAdd,           // a + b
  kSubtract,      // a - b
  kMultiply,      // a * b
  kMultiplyAdd,   // a * b + c, with one rounding where the processor can
  kMultiplyPlus,  // a * b + q, likewise
  kClamp,         // a, but at least p and at most q
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

// Operands are values: step v makes value v.
struct ElementStep {
  ElementCode code = ElementCode::kInput;
  int a = -1, b = -1, c = -1;
  double p = 0, q = 0;
  std::string text() const;  // "scale 0 by 2 plus 1"
  bool operator==(const ElementStep&) const = default;
};

// An input whose shape is not that of the outputs spreads over it along `axis` (ops/broadcast.h).
struct ElementFormula {
  std::vector<ElementStep> steps;
  std::vector<int64_t> axes;  // by input
  std::vector<int> results;   // by output: the value it is

  int append(const ElementStep& step);  // the value; that of an earlier step where it is the same
  // The results for these inputs, in float as kernels compute it, but for the last bits of
  // functions.
  std::vector<float> evaluate(const std::vector<float>& inputs) const;
  // Whether elements of padding stay zero.
  bool maps_zeros_to_zeros() const;
};

// Attributes of an operation, and back: "steps", "axes", "results".
void to_attributes(const ElementFormula& formula, Attributes& attributes);
ElementFormula formula_of(const Attributes& attributes);
// An operation fused_elementwise of that shape, with outputs of these types.
Attributes fused_attributes(const ElementFormula& formula, const Shape& shape,
                            const std::vector<DType>& types);

// What an operation's OpDef::elementwise sees: it makes values of its inputs and says which are its
// outputs. All outputs are of one shape, the inputs of it or spread over it. An operation that does
// not set all its outputs (in this form of it) counts as not elementwise.
class ElementwiseContext {
 public:
  using Value = int;
  // values: of variables that the formula has a value of already; grows by the outputs. Inputs that
  // have none are appended to `inputs` and to the formula's.
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
  // Rounded to the type of the output's variable.
  void output(int i, Value value);

  // Any step, of values of this formula.
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

// Adds an operation to a formula; false, and nothing is added, where it is not elementwise. inputs,
// values: see ElementwiseContext.
bool add_to_formula(const Program& program, const Op& op, ElementFormula& formula,
                    std::map<VarId, int>& values, std::vector<VarId>& inputs);

// A formula for a machine with registers: each step's value goes into register `target`, operands
// are registers (of an input: its number). Results stay in theirs to the end.
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

// What every backend's kernel takes.
inline constexpr int kMostElementRegisters = 20;
inline constexpr int kMostElementLines = 64;
inline constexpr int kMostElementInputs = 12;
inline constexpr int kMostElementOutputs = 12;

}  // namespace fleet
