// elementwise_add: out = activation(x + y), with y broadcast over x along `axis` (ops/broadcast.h).
// With activation "relu" it is the join of a residual block. activation and y_activation are
// "relu", "tanh", "scale" (t * scale + bias) or empty, and at most one of them is set; with
// y_activation, out = x + y_activation(y). Intermediate values are never stored.
#include "graph/op.h"
#include "graph/program.h"
#include "ops/activation.h"
#include "ops/broadcast.h"
#include "ops/element_formula.h"
#include "ops/mixed_precision.h"

namespace fleet {
namespace {

bool is_known(const std::string& activation) {
  return activation.empty() || activation == "relu" || activation == "tanh" ||
         activation == "scale";
}

void check_activations(const ShapeContext& context) {
  const Attributes& attributes = context.attributes();
  const std::string &after = attributes.text("activation"), &of_y = attributes.text("y_activation");
  context.require(is_known(after) && is_known(of_y) && (after.empty() || of_y.empty()),
                  "cannot fuse both '" + after + "' and '" + of_y + "'");
}

ElementwiseContext::Value activated(ElementwiseContext& context, const std::string& activation,
                                    ElementwiseContext::Value value) {
  const Attributes& attributes = context.attributes();
  if (activation == "relu") return context.where_above(value, 0, value);
  if (activation == "tanh") return context.tanh(value);
  if (activation.empty()) return value;
  return context.scale(value, attributes.number("scale"), attributes.number("bias"));
}

void formula(ElementwiseContext& context) {
  const Attributes& attributes = context.attributes();
  const auto x = context.input(0), y = context.input(1, attributes.integer("axis"));
  const auto sum = context.add(x, activated(context, attributes.text("y_activation"), y));
  context.output(0, activated(context, attributes.text("activation"), sum));
}

bool is_same_shape(const GradientContext& context) {
  return context.input_var(0).shape == context.input_var(1).shape;
}

VarId new_temporary(GradientContext& context, int input) {
  return context.program().temporary(context.input_var(input).name + "@GRAD");
}

// dx = dy * (1 - tanh(y)^2).
void append_tanh_gradient_of_argument(GradientContext& context, VarId y, VarId dy, VarId dx) {
  const Var& var = context.program().var(y);
  ElementFormula formula;
  formula.axes = {-1, -1};
  const int of = formula.append({.code = ElementCode::kInput, .a = 0});
  const int gradient = formula.append({.code = ElementCode::kInput, .a = 1});
  const int t = formula.append({.code = ElementCode::kTanh, .a = of});
  const int minus = formula.append({.code = ElementCode::kScale, .a = t, .p = -1});
  const int slope =
      formula.append({.code = ElementCode::kMultiplyPlus, .a = minus, .b = t, .q = 1});
  const int result = formula.append({.code = ElementCode::kMultiply, .a = gradient, .b = slope});
  formula.results = {result};
  context.append("fused_elementwise", {y, dy}, {dx},
                 fused_attributes(formula, var.shape, {var.dtype}));
}

// Computes dx from `dy`, for an activation whose output is `y`.
void append_activation_gradient(GradientContext& context, const std::string& activation, VarId y,
                                VarId dy, VarId dx) {
  if (activation == "scale") {
    context.append("scale", {dy}, {dx}, {{"scale", context.attributes().number("scale")}});
  } else {
    context.append(activation + "_grad", {y, dy}, {dx});
  }
}

// dy = dsum, summed where y is broadcast. With relu after the sum, dsum is masked by `out` and also
// written to dx.
void append_spread_gradient(GradientContext& context, VarId dsum, VarId out, VarId dx, VarId dy) {
  context.append("elementwise_add_grad", {dsum, out}, {dx, dy},
                 {{"axis", context.attributes().integer("axis")},
                  {"activation", std::string(out == kNoVar ? "" : "relu")},
                  {"y_shape", to_attribute(context.input_var(1).shape)}});
}

// The gradient of activation(x + y).
void gradient_behind(GradientContext& context, const std::string& activation) {
  const VarId out = context.output(0), gradient = context.output_gradient(0);
  if (is_same_shape(context)) {
    // One gradient of the sum serves both operands.
    const int first = context.needs(0) ? 0 : 1;
    const VarId dsum = context.input_gradient(first);
    append_activation_gradient(context, activation, out, gradient, dsum);
    if (first == 0) context.pass_gradient(1, dsum);
    return;
  }
  const VarId dx = context.input_gradient(0), dy = context.input_gradient(1);
  if (dx == kNoVar && dy == kNoVar) return;
  if (activation == "relu") return append_spread_gradient(context, gradient, out, dx, dy);
  const VarId dsum = dx == kNoVar ? new_temporary(context, 0) : dx;
  append_activation_gradient(context, activation, out, gradient, dsum);
  if (dy != kNoVar) append_spread_gradient(context, dsum, kNoVar, kNoVar, dy);
}

// The gradient of x + activation(y), or x + y.
void gradient_of_sum(GradientContext& context, const std::string& activation) {
  VarId gradient = context.output_gradient(0);
  context.pass_gradient(0, gradient);
  if (activation.empty() && is_same_shape(context)) return context.pass_gradient(1, gradient);
  const VarId dy = context.input_gradient(1);
  if (dy == kNoVar) return;
  if (!is_same_shape(context)) {
    const VarId sum = activation.empty() ? dy : new_temporary(context, 1);
    append_spread_gradient(context, gradient, kNoVar, kNoVar, sum);
    gradient = sum;
  }
  if (activation.empty()) return;
  if (activation == "tanh") {
    return append_tanh_gradient_of_argument(context, context.input(1), gradient, dy);
  }
  append_activation_gradient(context, activation, context.input(1), gradient, dy);
}

}  // namespace

FLEET_OP(elementwise_add) {
  def.help =
      "x + y, with y broadcast over x from axis on (-1: over its last dimensions); activation "
      "(\"relu\", \"tanh\" or \"scale\") is applied to the sum, y_activation to y; \"scale\" is "
      "t scale + bias";
  define_broadcasting(def);
  def.attributes.insert({{"activation", std::string()},
                         {"y_activation", std::string()},
                         {"scale", 1.0},
                         {"bias", 0.0}});
  def.add_trait<FusesActivations>().types = {"relu", "tanh"};
  def.add_trait<Elementwise>().formula = formula;
  def.infer = [infer = def.infer](ShapeContext& context) {
    check_activations(context);
    infer(context);
  };
  def.gradient = [](GradientContext& context) {
    const std::string activation = context.attributes().text("activation");
    if (!activation.empty()) return gradient_behind(context, activation);
    gradient_of_sum(context, context.attributes().text("y_activation"));
  };
}

// For a broadcast y: dx = dout where out > 0 (with activation "relu"; otherwise dx equals dout and
// is not requested), dy = dx summed over the dimensions that y is broadcast over.
FLEET_OP(elementwise_add_grad) {
  def.inputs = {{"dout"}, {"out", Slot::kOptional}};
  def.outputs = {{"dx", Slot::kOptional}, {"dy", Slot::kOptional}};
  def.attributes = {
      {"axis", int64_t{-1}}, {"activation", std::string()}, {"y_shape", std::vector<int64_t>()}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.inplace = {{0, 0}};
  def.add_trait<Elementwise>().formula = [](ElementwiseContext& context) {
    if (context.has_output(1) || !context.has_input(1)) return;  // not elementwise: it sums
    context.output(0, context.where_above(context.input(1), 0, context.input(0)));
  };
  def.infer = [](ShapeContext& context) {
    context.set_like(0, 0);
    context.set(1, to_shape(context.attributes().integers("y_shape")), context.dtype(0));
  };
}

}  // namespace fleet
