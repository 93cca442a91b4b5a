// gather_rows: y[n, m, :] = x[n, index[n, m], :]. x: [N, S, H]; index: int64 [N, M], each 0 to
// S - 1; y: [N, M, H]. On the CPU another index is kUsage, naming its place; on a GPU its row of y
// is NaN, and it has no gradient.
//
// The gradient of a row of x sums the rows of dy that read it in the order of m, in float32, so
// that it is the same on any number of threads.
#include "graph/program.h"
#include "ops/mixed_precision.h"

namespace fleet {
namespace {

void check_index(ShapeContext& context, int rows) {
  const Shape &x = context.shape(rows), &index = context.shape(1 - rows);
  context.require(x.rank() == 3, "the rows have 3 dimensions, not " + x.text());
  context.require(context.dtype(1 - rows) == DType::kInt64, "index must be int64");
  context.require(index.rank() == 2 && index[0] == x[0],
                  "index " + index.text() + " does not fit rows " + x.text());
}

}  // namespace

FLEET_OP(gather_rows) {
  def.help = "of each sample of x [N, S, H] the rows that index (int64 [N, M], 0 to S - 1) names";
  def.inputs = {{"x"}, {"index", Slot::kRequired, true}};
  def.outputs = {{"y"}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.infer = [](ShapeContext& context) {
    check_index(context, 0);
    const Shape &x = context.shape(0), &index = context.shape(1);
    context.set(0, {x[0], index[1], x[2]}, context.dtype(0));
  };
  def.gradient = [](GradientContext& context) {
    context.append("gather_rows_grad", {context.input(1), context.output_gradient(0)},
                   {context.input_gradient(0)}, {{"rows", context.input_var(0).shape[1]}});
  };
}

// dx[n, s, :] = sum of dy[n, m, :] over the m with index[n, m] = s, in order. rows: S.
FLEET_OP(gather_rows_grad) {
  def.inputs = {{"index", Slot::kRequired, true}, {"dy"}};
  def.outputs = {{"dx"}};
  def.attributes = {{"rows", int64_t{0}}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.infer = [](ShapeContext& context) {
    check_index(context, 1);
    const Shape& dy = context.shape(1);
    context.require(dy[1] == context.shape(0)[1], "dy does not fit index");
    context.set(0, {dy[0], context.attributes().integer("rows"), dy[2]}, context.dtype(1));
  };
}

}  // namespace fleet
