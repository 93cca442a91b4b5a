// fc and the gelu behind it as one operation, in gelu's form with tanh, and the gradients of both.
// The products' epilogues compute gelu, which otherwise takes a pass over memory. Inserted by the
// pass fuse_fc_gelu.
#include "ops/arithmetic.h"
#include "ops/mixed_precision.h"

namespace fleet {
namespace {

double fc_gelu_operations(const Program& program, const Op& op) {
  return sums_of_products(shape_of(program, op.outputs[0]), shape_of(program, op.inputs[1]));
}
double fc_gelu_data_grad_operations(const Program& program, const Op& op) {
  return sums_of_products(shape_of(program, op.inputs[1]), shape_of(program, op.inputs[0]));
}

}  // namespace

// before = fc(x, weight, bias), y = gelu(before).
FLEET_OP(fc_gelu) {
  def.inputs = {{"x"}, {"weight"}, {"bias", Slot::kOptional}};
  def.outputs = {{"y"}, {"before"}};
  def.attributes = {{"axis", int64_t{1}}};
  def.add_trait<MixedPrecision>().precision = Precision::kWhite;
  def.add_trait<Arithmetic>().operations = fc_gelu_operations;
  def.infer = [](ShapeContext& context) {
    static const OpDef& fc = op_registry().get("fc");
    fc.infer(context);
    const Var& y = context.program().var(context.op().outputs[0]);
    context.set(1, y.shape, y.dtype);
  };
}

// dx = gelu'(before) (dy weight): the gradient of what gelu got, where x = gelu(before) is the
// input of an fc with this weight.
FLEET_OP(fc_gelu_data_grad) {
  def.inputs = {{"weight"}, {"dy"}, {"before"}};
  def.outputs = {{"dx"}};
  def.add_trait<MixedPrecision>().precision = Precision::kWhite;
  def.add_trait<Arithmetic>().operations = fc_gelu_data_grad_operations;
  def.infer = [](ShapeContext& context) {
    const Shape &weight = context.shape(0), &dy = context.shape(1), &before = context.shape(2);
    context.require(weight.rank() == 2 && dy.rank() > 1 && dy[dy.rank() - 1] == weight[0] &&
                        before.elements() * weight[0] == dy.elements() * weight[1],
                    "before " + before.text() + " does not fit dy " + dy.text() + " and weight " +
                        weight.text());
    context.set_like(0, 2);
  };
}

}  // namespace fleet
