// concat: the inputs, concatenated along `axis`.
#include "graph/program.h"
#include "ops/mixed_precision.h"

namespace fleet {

FLEET_OP(concat) {
  def.help = "the inputs one after another along axis; all other dimensions are equal";
  def.inputs = {{"x", Slot::kVariadic}};
  def.outputs = {{"y"}};
  def.attributes = {{"axis", int64_t{1}}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.infer = [](ShapeContext& context) {
    Shape shape = context.shape(0);
    const int64_t given = context.attributes().integer("axis");
    context.require(given >= 0 && given < shape.rank(),
                    "no axis " + std::to_string(given) + " in " + shape.text());
    const int axis = static_cast<int>(given);
    for (int i = 1; i < context.input_count(); ++i) {
      Shape other = context.shape(i);
      bool fits = other.rank() == shape.rank() && context.dtype(i) == context.dtype(0);
      for (int d = 0; fits && d < shape.rank(); ++d) fits = d == axis || other[d] == shape[d];
      context.require(fits, other.text() + " does not fit behind " + shape.text());
      shape[axis] += other[axis];
    }
    context.set(0, shape, context.dtype(0));
  };
  def.gradient = [](GradientContext& context) {
    const int64_t axis = context.attributes().integer("axis");
    int64_t start = 0;
    for (int i = 0; i < context.input_count(); ++i) {
      const int64_t end = start + context.input_var(i).shape[static_cast<int>(axis)];
      if (context.needs(i)) {
        context.append("slice", {context.output_gradient(0)}, {context.input_gradient(i)},
                       {{"axis", axis}, {"start", start}, {"end", end}});
      }
      start = end;
    }
  };
}

}  // namespace fleet
