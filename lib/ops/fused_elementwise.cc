// fused_elementwise: several elementwise operations as one formula (graph/elementwise.h), in one
// pass over memory: y[o][i] = formula(x[0][i], x[1][i], ...). The pass fuse_elementwise makes it.
//
// Outputs are of the shape `shape` and the types `types`; inputs are of that shape, or spread over
// it along their place in `axes` (ops/broadcast.h). An output takes the memory of any input of as
// many bytes: kernels read an element of all inputs before they write it to an output. An input
// that spreads must not be of a wider type than any output, so that it never is of as many bytes.
#include "graph/elementwise.h"
#include "ops/broadcast.h"
#include "ops/dtype_attribute.h"
#include "ops/shape_attribute.h"

namespace fleet {
namespace {

void infer(ShapeContext& context) {
  const ElementFormula formula = formula_of(context.attributes());
  const Shape shape = to_shape(context.attributes().integers("shape"));
  const std::vector<std::string>& types = context.attributes().texts("types");
  context.require(static_cast<int>(formula.axes.size()) == context.input_count() &&
                      formula.results.size() == context.op().outputs.size() &&
                      types.size() == formula.results.size(),
                  "the formula is of other inputs and outputs");
  size_t narrowest = sizeof(double);
  for (const std::string& type : types) narrowest = std::min(narrowest, size_of(to_dtype(type)));
  for (int i = 0; i < context.input_count(); ++i) {
    const auto spread = broadcast_of(shape, context.shape(i), formula.axes[i]);
    context.require(
        spread.has_value() && (spread->same() || size_of(context.dtype(i)) <= narrowest),
        "cannot spread " + context.shape(i).text() + " over " + shape.text());
  }
  for (size_t o = 0; o < types.size(); ++o) {
    context.set(static_cast<int>(o), shape, to_dtype(types[o]));
  }
}

// So that it can be joined with others again.
void replay(ElementwiseContext& context) {
  const ElementFormula formula = formula_of(context.attributes());
  std::vector<ElementwiseContext::Value> values;
  for (ElementStep step : formula.steps) {
    if (step.code == ElementCode::kInput) {
      values.push_back(context.input(step.a, formula.axes[step.a]));
      continue;
    }
    for (int* operand : {&step.a, &step.b, &step.c}) {
      if (*operand >= 0) *operand = values[*operand];
    }
    values.push_back(context.step(step));
  }
  for (size_t o = 0; o < formula.results.size(); ++o) {
    context.output(static_cast<int>(o), values[formula.results[o]]);
  }
}

}  // namespace

FLEET_OP(fused_elementwise) {
  def.inputs = {{"x", Slot::kVariadic}};
  def.outputs = {{"y", Slot::kVariadic}};
  def.attributes = {{"steps", std::vector<std::string>()},
                    {"axes", std::vector<int64_t>()},
                    {"results", std::vector<int64_t>()},
                    {"shape", std::vector<int64_t>()},
                    {"types", std::vector<std::string>()}};
  def.precision = Precision::kGray;
  for (int o = 0; o < kMostElementOutputs; ++o) {
    for (int i = 0; i < kMostElementInputs; ++i) def.inplace.emplace_back(i, o);
  }
  def.elementwise = replay;
  def.infer = infer;
}

}  // namespace fleet
