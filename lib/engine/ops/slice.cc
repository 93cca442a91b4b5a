// slice: elements start..end-1 along `axis`.
#include "graph/program.h"
#include "ops/mixed_precision.h"

namespace fleet {

FLEET_OP(slice) {
  def.help = "the elements from start to end - 1 along axis";
  def.inputs = {{"x"}};
  def.outputs = {{"y"}};
  def.attributes = {{"axis", int64_t{0}}, {"start", int64_t{0}}, {"end", int64_t{0}}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.infer = [](ShapeContext& context) {
    Shape shape = context.shape(0);
    const int64_t given = context.attributes().integer("axis");
    context.require(given >= 0 && given < shape.rank(),
                    "no axis " + std::to_string(given) + " in " + shape.text());
    const int axis = static_cast<int>(given);
    const int64_t start = context.attributes().integer("start"),
                  end = context.attributes().integer("end");
    context.require(0 <= start && start < end && end <= shape[axis],
                    "no elements " + std::to_string(start) + ".." + std::to_string(end) +
                        " along axis " + std::to_string(axis) + " of " + shape.text());
    shape[axis] = end - start;
    context.set(0, shape, context.dtype(0));
  };
  def.gradient = [](GradientContext& context) {
    const int64_t axis = context.attributes().integer("axis");
    context.append("slice_grad", {context.output_gradient(0)}, {context.input_gradient(0)},
                   {{"axis", axis},
                    {"start", context.attributes().integer("start")},
                    {"size", context.input_var(0).shape[static_cast<int>(axis)]}});
  };
}

// dx: dy at start.. along `axis`, which has `size` elements; 0 elsewhere
FLEET_OP(slice_grad) {
  def.inputs = {{"dy"}};
  def.outputs = {{"dx"}};
  def.attributes = {{"axis", int64_t{0}}, {"start", int64_t{0}}, {"size", int64_t{0}}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.infer = [](ShapeContext& context) {
    Shape shape = context.shape(0);
    shape[static_cast<int>(context.attributes().integer("axis"))] =
        context.attributes().integer("size");
    context.set(0, shape, context.dtype(0));
  };
}

}  // namespace fleet
