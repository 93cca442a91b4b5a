// Shared definition of gated activations: y = f(gate) * up for x = [gate, up], halves of the last
// dimension.
#pragma once

#include <string>

#include "graph/program.h"
#include "ops/mixed_precision.h"

namespace fleet {

inline void infer_gated(ShapeContext& context) {
  const Shape& x = context.shape(0);
  const int last = x.rank() - 1;
  context.require(last >= 0 && x[last] % 2 == 0,
                  "the last dimension of " + x.text() + " has no two halves");
  std::vector<int64_t> dims = to_attribute(x);
  dims.back() /= 2;
  context.set(0, to_shape(dims), context.dtype(0));
}

inline void define_gated(OpDef& def, const std::string& gradient) {
  def.inputs = {{"x"}};
  def.outputs = {{"y"}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.infer = infer_gated;
  def.gradient = [gradient](GradientContext& context) {
    context.append(gradient, {context.input(0), context.output_gradient(0)},
                   {context.input_gradient(0)}, context.attributes());
  };
}

// dx = [f'(gate) up dy, f(gate) dy]
inline void define_gated_gradient(OpDef& def) {
  def.inputs = {{"x"}, {"dy"}};
  def.outputs = {{"dx"}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.inplace = {{0, 0}};
  def.infer = [](ShapeContext& context) { context.set_like(0, 0); };
}

}  // namespace fleet
