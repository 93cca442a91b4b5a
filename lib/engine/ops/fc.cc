// fc: a fully connected layer, y = x weightᵀ + bias with weight[out, in] and bias[out] as in
// PyTorch's Linear. x is viewed as a matrix: the axes before `axis` form its rows, the others its
// `in` columns; y has x's leading axes and `out`.
//
// The gradient is two operations, the weight's first, for the reasons given in conv2d.cc.
#include "graph/program.h"
#include "ops/arithmetic.h"
#include "ops/mixed_precision.h"

namespace fleet {
namespace {

int64_t columns(const Shape& x, int64_t axis) {
  int64_t count = 1;
  for (int d = static_cast<int>(axis); d < x.rank(); ++d) count *= x[d];
  return count;
}

void infer_fc(ShapeContext& context) {
  const Shape &x = context.shape(0), &weight = context.shape(1);
  const int64_t axis = context.attributes().integer("axis");
  context.require(axis >= 1 && axis < x.rank(),
                  "axis " + std::to_string(axis) + " is not within x " + x.text());
  context.require(weight.rank() == 2 && columns(x, axis) == weight[1],
                  "x " + x.text() + " does not fit weight " + weight.text());
  if (context.has_input(2)) {
    context.require(context.shape(2) == Shape{weight[0]},
                    "bias " + context.shape(2).text() + " must have one value per output");
  }
  std::vector<int64_t> y(x.begin(), x.begin() + axis);
  y.push_back(weight[0]);
  context.set(0, Shape(y), context.dtype(0));
}

void fc_gradient(GradientContext& context) {
  const Shape x = context.input_var(0).shape;
  const VarId dy = context.output_gradient(0);
  if (context.needs(1) || context.needs(2)) {
    context.append("fc_weight_grad", {context.input(0), dy},
                   {context.input_gradient(1), context.input_gradient(2)}, context.attributes());
  }
  if (context.needs(0)) {
    Attributes attributes = context.attributes();
    attributes.set("shape", std::vector<int64_t>(x.begin(), x.end()));
    context.append("fc_data_grad", {context.input(1), dy}, {context.input_gradient(0)}, attributes);
  }
}

double fc_forward_operations(const Program& program, const Op& op) {
  return sums_of_products(shape_of(program, op.outputs[0]), shape_of(program, op.inputs[1]));
}
double fc_data_grad_operations(const Program& program, const Op& op) {
  return sums_of_products(shape_of(program, op.inputs[1]), shape_of(program, op.inputs[0]));
}
double fc_weight_grad_operations(const Program& program, const Op& op) {
  if (op.outputs[0] == kNoVar) return 0;  // only the bias has a gradient
  const Shape x = shape_of(program, op.inputs[0]), dy = shape_of(program, op.inputs[1]);
  return sums_of_products(dy, {1, columns(x, op.attributes.integer("axis"))});
}

}  // namespace

FLEET_OP(fc) {
  def.help =
      "a fully connected layer as PyTorch's Linear, with weight [out, in]; the dimensions of x "
      "from axis on are its inputs";
  def.inputs = {{"x"}, {"weight"}, {"bias", Slot::kOptional}};
  def.outputs = {{"y"}};
  def.attributes = {{"axis", int64_t{1}}};
  def.add_trait<MixedPrecision>().precision = Precision::kWhite;
  def.add_trait<Arithmetic>().operations = fc_forward_operations;
  def.infer = infer_fc;
  def.gradient = fc_gradient;
}

// dweight[out, in] = dyᵀ x, dbias[out] = the sum of dy's rows.
FLEET_OP(fc_weight_grad) {
  def.inputs = {{"x"}, {"dy"}};
  def.outputs = {{"dweight", Slot::kOptional}, {"dbias", Slot::kOptional}};
  def.attributes = {{"axis", int64_t{1}}};
  def.add_trait<MixedPrecision>().precision = Precision::kWhite;
  def.add_trait<Arithmetic>().operations = fc_weight_grad_operations;
  def.infer = [](ShapeContext& context) {
    const Shape &x = context.shape(0), &dy = context.shape(1);
    const int64_t out = dy[dy.rank() - 1];
    context.set(0, {out, columns(x, context.attributes().integer("axis"))}, context.dtype(0));
    context.set(1, {out}, context.dtype(0));
  };
}

// dx of the given shape: dy weight.
FLEET_OP(fc_data_grad) {
  def.inputs = {{"weight"}, {"dy"}};
  def.outputs = {{"dx"}};
  def.attributes = {{"axis", int64_t{1}}, {"shape", std::vector<int64_t>{}}};
  def.add_trait<MixedPrecision>().precision = Precision::kWhite;
  def.add_trait<Arithmetic>().operations = fc_data_grad_operations;
  def.infer = [](ShapeContext& context) {
    context.set(0, Shape(context.attributes().integers("shape")), context.dtype(1));
  };
}

}  // namespace fleet
