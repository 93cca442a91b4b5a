// matmul: z[..., M, N] = x[..., M, K] y[..., K, N]; transpose_x and transpose_y swap the last two
// axes of the input. Leading axes (a batch) must be equal. Its gradients are matmuls too.
#include "graph/program.h"
#include "ops/arithmetic.h"
#include "ops/mixed_precision.h"

namespace fleet {
namespace {

void infer_matmul(ShapeContext& context) {
  const Shape &x = context.shape(0), &y = context.shape(1);
  const std::string both = "x " + x.text() + " and y " + y.text();
  const int rank = x.rank();
  context.require(rank >= 2 && rank == y.rank(), both + " must have equal ranks of at least 2");
  const bool transpose_x = context.attributes().boolean("transpose_x");
  const bool transpose_y = context.attributes().boolean("transpose_y");
  Shape z = x;
  for (int d = 0; d < rank - 2; ++d) {
    context.require(x[d] == y[d], both + " must have equal leading axes");
  }
  z[rank - 2] = x[transpose_x ? rank - 1 : rank - 2];
  z[rank - 1] = y[transpose_y ? rank - 2 : rank - 1];
  context.require(x[transpose_x ? rank - 2 : rank - 1] == y[transpose_y ? rank - 1 : rank - 2],
                  both + " do not fit (transpose_x " + text_of(transpose_x) + ", transpose_y " +
                      text_of(transpose_y) + ")");
  context.set(0, z, context.dtype(0));
}

Attributes transposes(bool x, bool y) { return {{"transpose_x", x}, {"transpose_y", y}}; }

void matmul_gradient(GradientContext& context) {
  const VarId x = context.input(0), y = context.input(1), dz = context.output_gradient(0);
  const bool tx = context.attributes().boolean("transpose_x");
  const bool ty = context.attributes().boolean("transpose_y");
  if (context.needs(0)) {
    if (tx) {
      context.append("matmul", {y, dz}, {context.input_gradient(0)}, transposes(ty, true));
    } else {
      context.append("matmul", {dz, y}, {context.input_gradient(0)}, transposes(false, !ty));
    }
  }
  if (context.needs(1)) {
    if (ty) {
      context.append("matmul", {dz, x}, {context.input_gradient(1)}, transposes(true, tx));
    } else {
      context.append("matmul", {x, dz}, {context.input_gradient(1)}, transposes(!tx, false));
    }
  }
}

double operations(const Program& program, const Op& op) {
  const Shape &x = program.var(op.inputs[0]).shape, &z = program.var(op.outputs[0]).shape;
  const int shared = op.attributes.boolean("transpose_x") ? x.rank() - 2 : x.rank() - 1;
  return 2 * static_cast<double>(z.elements()) * static_cast<double>(x[shared]);
}

}  // namespace

FLEET_OP(matmul) {
  def.help =
      "the product of matrices x [..., M, K] and y [..., K, N]; transpose_x and transpose_y swap "
      "the last two dimensions of an input; the leading dimensions are equal";
  def.inputs = {{"x"}, {"y"}};
  def.outputs = {{"z"}};
  def.attributes = {{"transpose_x", false}, {"transpose_y", false}};
  def.add_trait<MixedPrecision>().precision = Precision::kWhite;
  def.add_trait<Arithmetic>().operations = operations;
  def.infer = infer_matmul;
  def.gradient = matmul_gradient;
}

}  // namespace fleet
