// gelu: y = x * P(X <= x) for a standard normal X (Hendrycks and Gimpel, 2016), by the error
// function, or with `approximate` by its tanh form
// y = x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))).
#include "graph/program.h"
#include "ops/activation.h"
#include "ops/element_formula.h"
#include "ops/mixed_precision.h"

namespace fleet {
namespace {

constexpr float kRootHalf = 0.70710678118654752f;   // 1 / sqrt(2)
constexpr float kDensity = 0.39894228040143268f;    // 1 / sqrt(2 pi)
constexpr float kTanhScale = 0.79788456080286536f;  // sqrt(2 / pi)
constexpr float kTanhCube = 0.044715f;

// Same order of computation as in the kernels of gelu and its gradient, so that the bits are equal.
void gelu_formula(ElementwiseContext& c) {
  const auto x = c.input(0), half = c.scale(x, 0.5);
  ElementwiseContext::Value inner;
  if (c.attributes().boolean("approximate")) {
    const auto square = c.multiply(c.scale(x, kTanhCube), x);
    inner = c.tanh(c.scale(c.multiply_add(square, x, x), kTanhScale));
  } else {
    inner = c.erf(c.scale(x, kRootHalf));
  }
  c.output(0, c.multiply(half, c.scale(inner, 1, 1)));
}

void gelu_grad_formula(ElementwiseContext& c) {
  const auto x = c.input(0);
  ElementwiseContext::Value slope;
  if (c.attributes().boolean("approximate")) {
    const auto square = c.multiply(x, x);
    const auto inner = c.multiply(c.scale(x, kTanhScale), c.scale(square, kTanhCube, 1));
    const auto t = c.tanh(inner);
    const auto cube_slope = c.scale(c.scale(square, 3 * kTanhCube, 1), kTanhScale);
    const auto outer = c.multiply(c.scale(x, 0.5), c.multiply_plus(c.scale(t, -1), t, 1));
    slope = c.add(c.multiply(outer, cube_slope), c.scale(c.scale(t, 1, 1), 0.5));
  } else {
    const auto below = c.scale(c.scale(c.erf(c.scale(x, kRootHalf)), 1, 1), 0.5);
    const auto density = c.exp(c.multiply(c.scale(x, -0.5), x));
    slope = c.multiply_add(c.scale(x, kDensity), density, below);
  }
  c.output(0, c.multiply(c.input(1), slope));
}

}  // namespace

FLEET_OP(gelu) {
  def.help = "x P(X <= x) for a standard normal X; approximate selects the form with tanh";
  def.inputs = {{"x"}};
  def.outputs = {{"y"}};
  def.attributes = {{"approximate", false}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.add_trait<Activation>();
  def.inplace = {{0, 0}};
  def.add_trait<Elementwise>().formula = gelu_formula;
  def.infer = [](ShapeContext& context) { context.set_like(0, 0); };
  def.gradient = [](GradientContext& context) {
    context.append("gelu_grad", {context.input(0), context.output_gradient(0)},
                   {context.input_gradient(0)},
                   {{"approximate", context.attributes().boolean("approximate")}});
  };
}

FLEET_OP(gelu_grad) {
  def.inputs = {{"x"}, {"dy"}};
  def.outputs = {{"dx"}};
  def.attributes = {{"approximate", false}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.inplace = {{1, 0}};
  def.add_trait<Elementwise>().formula = gelu_grad_formula;
  def.infer = [](ShapeContext& context) { context.set_like(0, 1); };
}

}  // namespace fleet
