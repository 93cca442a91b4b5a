// elementwise_add: out = activation(x + y), y spread over x along `axis` (ops/broadcast.h). With
// activation "relu" it is the join of a residual block.
#include "graph/program.h"
#include "ops/broadcast.h"
#include "ops/shape_attribute.h"

namespace fleet {
namespace {

void gradient_of_same_shapes(GradientContext& context) {
  VarId gradient = context.output_gradient(0);
  if (context.attributes().text("activation").empty()) {
    context.pass_gradient(0, gradient);
    context.pass_gradient(1, gradient);
    return;
  }
  // One masked gradient serves both sides.
  const int first = context.needs(0) ? 0 : 1;
  const VarId masked = context.input_gradient(first);
  context.append("relu_grad", {context.output(0), gradient}, {masked});
  if (first == 0) context.pass_gradient(1, masked);
}

void gradient_of_broadcast(GradientContext& context) {
  const std::string activation = context.attributes().text("activation");
  VarId dx = kNoVar;
  if (activation.empty()) {
    context.pass_gradient(0, context.output_gradient(0));
  } else {
    dx = context.input_gradient(0);
  }
  const VarId dy = context.input_gradient(1);
  if (dx == kNoVar && dy == kNoVar) return;
  const VarId out = activation.empty() ? kNoVar : context.output(0);
  context.append("elementwise_add_grad", {context.output_gradient(0), out}, {dx, dy},
                 {{"axis", context.attributes().integer("axis")},
                  {"activation", activation},
                  {"y_shape", to_attribute(context.input_var(1).shape)}});
}

}  // namespace

FLEET_OP(elementwise_add) {
  def.inputs = {{"x"}, {"y"}};
  def.outputs = {{"out"}};
  def.attributes = {{"axis", int64_t{-1}}, {"activation", std::string()}};
  def.precision = Precision::kGray;
  def.fuses_activations = {"relu"};
  def.inplace = {{0, 0}};
  def.infer = [](ShapeContext& context) {
    context.require(
        broadcast_of(context.shape(0), context.shape(1), context.attributes().integer("axis"))
            .has_value(),
        "cannot add " + context.shape(1).text() + " to " + context.shape(0).text());
    context.set_like(0, 0);
  };
  def.gradient = [](GradientContext& context) {
    const bool same = context.input_var(0).shape == context.input_var(1).shape;
    same ? gradient_of_same_shapes(context) : gradient_of_broadcast(context);
  };
}

// For a y that spreads: dx = dout where out > 0 (with activation "relu"; else dx is dout and not
// asked for), dy = dx summed over the dimensions y spreads over.
FLEET_OP(elementwise_add_grad) {
  def.inputs = {{"dout"}, {"out", Slot::kOptional}};
  def.outputs = {{"dx", Slot::kOptional}, {"dy", Slot::kOptional}};
  def.attributes = {
      {"axis", int64_t{-1}}, {"activation", std::string()}, {"y_shape", std::vector<int64_t>()}};
  def.precision = Precision::kGray;
  def.inplace = {{0, 0}};
  def.infer = [](ShapeContext& context) {
    context.set_like(0, 0);
    context.set(1, to_shape(context.attributes().integers("y_shape")), context.dtype(0));
  };
}

}  // namespace fleet
