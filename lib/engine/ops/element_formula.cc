#include "ops/element_formula.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "tensor/float16.h"

namespace fleet {
namespace {

constexpr const char* kNames[] = {
    "input",         "scale", "add",         "subtract",    "multiply",     "multiply_add",
    "multiply_plus", "clamp", "where_above", "where_below", "where_within", "tanh",
    "sigmoid",       "exp",   "erf",         "bfloat16",    "float16"};
constexpr int kCodes = sizeof(kNames) / sizeof(kNames[0]);

// The number of operands among a, b, c.
int operands_of(ElementCode code) {
  switch (code) {
    case ElementCode::kInput:
      return 0;
    case ElementCode::kMultiplyAdd:
      return 3;
    case ElementCode::kAdd:
    case ElementCode::kSubtract:
    case ElementCode::kMultiply:
    case ElementCode::kMultiplyPlus:
    case ElementCode::kWhereAbove:
    case ElementCode::kWhereBelow:
    case ElementCode::kWhereWithin:
      return 2;
    default:
      return 1;
  }
}

// Formats a number so that parsing it gives the same bits.
std::string exact(double number) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.9g", number);
  if (std::strtod(text, nullptr) != number) std::snprintf(text, sizeof(text), "%.17g", number);
  return text;
}

ElementStep parse(const std::string& text) {
  std::istringstream words(text);
  std::string name, p, q;
  ElementStep step;
  words >> name >> step.a >> step.b >> step.c >> p >> q;
  const auto found = std::find(std::begin(kNames), std::end(kNames), name);
  FLEET_CHECK(found != std::end(kNames) && !q.empty(), "not a step of a formula: '" + text + "'");
  step.code = static_cast<ElementCode>(found - std::begin(kNames));
  step.p = std::strtod(p.c_str(), nullptr);
  step.q = std::strtod(q.c_str(), nullptr);
  return step;
}

float computed(const ElementStep& step, float a, float b, float c) {
  const float p = static_cast<float>(step.p), q = static_cast<float>(step.q);
  switch (step.code) {
    case ElementCode::kInput:
      return a;
    case ElementCode::kScale:
      return a * p + q;
    case ElementCode::kAdd:
      return a + b;
    case ElementCode::kSubtract:
      return a - b;
    case ElementCode::kMultiply:
      return a * b;
    case ElementCode::kMultiplyAdd:
      return a * b + c;
    case ElementCode::kMultiplyPlus:
      return a * b + q;
    case ElementCode::kClamp:
      return a < p ? p : (a > q ? q : a);
    case ElementCode::kWhereAbove:
      return a <= p ? 0 : b;
    case ElementCode::kWhereBelow:
      return a >= q ? 0 : b;
    case ElementCode::kWhereWithin:
      return a >= p && a <= q ? b : 0;
    case ElementCode::kTanh:
      return std::tanh(a);
    case ElementCode::kSigmoid:
      return 1 / (1 + std::exp(-a));
    case ElementCode::kExp:
      return std::exp(a);
    case ElementCode::kErf:
      return std::erf(a);
    case ElementCode::kBFloat16:
      return static_cast<float>(BFloat16(a));
    case ElementCode::kFloat16:
      return static_cast<float>(Float16(a));
  }
  return 0;
}

}  // namespace

const char* name_of(ElementCode code) { return kNames[static_cast<int>(code)]; }

std::string ElementStep::text() const {
  std::string text = name_of(code);
  for (int operand : {a, b, c}) text += " " + std::to_string(operand);
  return text + " " + exact(p) + " " + exact(q);
}

int ElementFormula::append(const ElementStep& step) {
  const auto same = std::find(steps.begin(), steps.end(), step);
  if (same != steps.end()) return static_cast<int>(same - steps.begin());
  steps.push_back(step);
  return static_cast<int>(steps.size()) - 1;
}

std::vector<float> ElementFormula::evaluate(const std::vector<float>& inputs) const {
  std::vector<float> values, out;
  for (const ElementStep& step : steps) {
    const auto value = [&](int v) { return v < 0 ? 0.0f : values[v]; };
    values.push_back(step.code == ElementCode::kInput
                         ? inputs[step.a]
                         : computed(step, value(step.a), value(step.b), value(step.c)));
  }
  for (int v : results) out.push_back(values[v]);
  return out;
}

bool ElementFormula::maps_zeros_to_zeros() const {
  const std::vector<float> out = evaluate(std::vector<float>(axes.size(), 0));
  return std::all_of(out.begin(), out.end(), [](float value) { return value == 0; });
}

void to_attributes(const ElementFormula& formula, Attributes& attributes) {
  std::vector<std::string> steps;
  for (const ElementStep& step : formula.steps) steps.push_back(step.text());
  attributes.set("steps", steps);
  attributes.set("axes", formula.axes);
  attributes.set("results", std::vector<int64_t>(formula.results.begin(), formula.results.end()));
}

ElementFormula formula_of(const Attributes& attributes) {
  ElementFormula formula;
  for (const std::string& text : attributes.texts("steps")) formula.steps.push_back(parse(text));
  formula.axes = attributes.integers("axes");
  for (int64_t value : attributes.integers("results")) {
    formula.results.push_back(static_cast<int>(value));
  }
  return formula;
}

Attributes fused_attributes(const ElementFormula& formula, const Shape& shape,
                            const std::vector<DType>& types) {
  Attributes attributes;
  to_attributes(formula, attributes);
  attributes.set("shape", std::vector<int64_t>(shape.begin(), shape.end()));
  std::vector<std::string> names;
  for (DType type : types) names.push_back(name_of(type));
  attributes.set("types", names);
  return attributes;
}

ElementwiseContext::ElementwiseContext(const Program& program, const Op& op,
                                       ElementFormula& formula, std::map<VarId, Value>& values,
                                       std::vector<VarId>& inputs)
    : program_(program), op_(op), formula_(formula), values_(values), inputs_(inputs) {}

ElementwiseContext::Value ElementwiseContext::input(int i, int64_t axis) {
  const VarId id = op_.inputs[i];
  for (VarId out : op_.outputs) {
    if (out != kNoVar && program_.var(out).shape == shape(i)) axis = -1;
  }
  const auto known = values_.find(id);
  if (known != values_.end()) {
    const ElementStep& made = formula_.steps[known->second];
    const bool is_read = made.code == ElementCode::kInput && inputs_[made.a] == id;
    if (!is_read || formula_.axes[made.a] == axis) return known->second;
  }
  inputs_.push_back(id);
  formula_.axes.push_back(axis);
  const Value value =
      step({.code = ElementCode::kInput, .a = static_cast<int>(inputs_.size()) - 1});
  values_[id] = value;
  return value;
}

void ElementwiseContext::output(int i, Value value) {
  values_[op_.outputs[i]] = rounded(value, program_.var(op_.outputs[i]).dtype);
}

ElementwiseContext::Value ElementwiseContext::scale(Value a, double factor, double plus) {
  return step({.code = ElementCode::kScale, .a = a, .p = factor, .q = plus});
}

ElementwiseContext::Value ElementwiseContext::rounded(Value value, DType dtype) {
  if (dtype == DType::kBFloat16) return step({.code = ElementCode::kBFloat16, .a = value});
  if (dtype == DType::kFloat16) return step({.code = ElementCode::kFloat16, .a = value});
  return value;
}

bool add_to_formula(const Program& program, const Op& op, ElementFormula& formula,
                    std::map<VarId, int>& values, std::vector<VarId>& inputs) {
  const Elementwise* trait = op.def->find_trait<Elementwise>();
  if (!trait) return false;
  ElementFormula grown = formula;
  std::map<VarId, int> more = values;
  std::vector<VarId> read = inputs;
  ElementwiseContext context(program, op, grown, more, read);
  trait->formula(context);
  const bool complete = std::all_of(op.outputs.begin(), op.outputs.end(),
                                    [&](VarId id) { return id == kNoVar || more.contains(id); });
  if (!complete) return false;
  formula = std::move(grown);
  values = std::move(more);
  inputs = std::move(read);
  return true;
}

ElementProgram assign_registers(const ElementFormula& formula) {
  const int count = static_cast<int>(formula.steps.size());
  std::vector<int> last(count, -1), place(count, -1);
  for (int v = 0; v < count; ++v) {
    const ElementStep& step = formula.steps[v];
    const int operands[] = {step.a, step.b, step.c};
    for (int i = 0; i < operands_of(step.code); ++i) last[operands[i]] = v;
  }
  for (int v : formula.results) last[v] = count;  // live to the end
  ElementProgram program;
  std::vector<int> free;
  for (int v = 0; v < count; ++v) {
    if (last[v] < 0) continue;  // never read
    const ElementStep& step = formula.steps[v];
    ElementCodeLine line{
        .code = step.code, .p = static_cast<float>(step.p), .q = static_cast<float>(step.q)};
    const int operands[] = {step.a, step.b, step.c};
    int* const registers[] = {&line.a, &line.b, &line.c};
    if (step.code == ElementCode::kInput) line.a = step.a;
    for (int i = 0; i < operands_of(step.code); ++i) *registers[i] = place[operands[i]];
    for (int i = 0; i < operands_of(step.code); ++i) {
      const bool repeated = std::find(operands, operands + i, operands[i]) != operands + i;
      if (last[operands[i]] == v && !repeated) free.push_back(place[operands[i]]);
    }
    if (free.empty()) free.push_back(program.registers++);
    place[v] = line.target = free.back();
    free.pop_back();
    program.lines.push_back(line);
  }
  for (int v : formula.results) program.results.push_back(place[v]);
  return program;
}

}  // namespace fleet
