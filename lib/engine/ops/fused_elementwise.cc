// fused_elementwise: several elementwise operations as one formula (ops/element_formula.h), in one
// pass over memory: y[o][i] = formula(x[0][i], x[1][i], ...). Inserted by the pass
// fuse_elementwise.
//
// Outputs have the shape `shape` and the types `types`. Inputs have that shape or are broadcast
// over it along their entry in `axes` (ops/broadcast.h). An output may take the memory of any input
// with the same number of bytes: kernels read an element of all inputs before they write it to an
// output. A broadcast input must not have a wider type than any output, so that it never has the
// same number of bytes.
#include "graph/op.h"
#include "ops/broadcast.h"
#include "ops/element_formula.h"
#include "ops/mixed_precision.h"

namespace fleet {
namespace {

void infer_fused_elementwise(ShapeContext& context) {
  const ElementFormula formula = formula_of(context.attributes());
  const Shape shape = to_shape(context.attributes().integers("shape"));
  const std::vector<std::string>& types = context.attributes().texts("types");
  context.require(static_cast<int>(formula.axes.size()) == context.input_count() &&
                      formula.results.size() == context.op().outputs.size() &&
                      types.size() == formula.results.size(),
                  "the formula has other inputs and outputs");
  size_t narrowest = sizeof(double);
  for (const std::string& type : types) narrowest = std::min(narrowest, size_of(to_dtype(type)));
  for (int i = 0; i < context.input_count(); ++i) {
    const auto spread = broadcast_of(shape, context.shape(i), formula.axes[i]);
    context.require(
        spread.has_value() && (spread->same() || size_of(context.dtype(i)) <= narrowest),
        "cannot broadcast " + context.shape(i).text() + " over " + shape.text());
  }
  for (size_t o = 0; o < types.size(); ++o) {
    context.set(static_cast<int>(o), shape, to_dtype(types[o]));
  }
}

// Allows fusing this operation with others again.
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
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  for (int o = 0; o < kMaxElementOutputs; ++o) {
    for (int i = 0; i < kMaxElementInputs; ++i) def.inplace.emplace_back(i, o);
  }
  def.add_trait<Elementwise>().formula = replay;
  def.infer = infer_fused_elementwise;
}

}  // namespace fleet
