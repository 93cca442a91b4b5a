// embedding: y[..., :] = weight[ids[...], :]. ids: int32 or int64 of any shape, each 0 to V - 1;
// weight: [V, D]. On the CPU another id is kUsage, naming its row; on a GPU its row of y is NaN.
//
// The gradient of a row of the weight sums the rows of dy that read it in the order of ids, so that
// it is the same on any number of threads. padding_idx: reads of this row give it no gradient, but
// return its values, as in PyTorch; -1: none.
#include "graph/program.h"
#include "ops/mixed_precision.h"

namespace fleet {
namespace {

bool is_id_type(DType dtype) { return dtype == DType::kInt32 || dtype == DType::kInt64; }

void infer_embedding(ShapeContext& context) {
  const Shape& weight = context.shape(1);
  context.require(is_id_type(context.dtype(0)), "ids must be int32 or int64");
  context.require(is_floating(context.dtype(1)), "weight must be of a floating type");
  context.require(weight.rank() == 2, "weight must have 2 dimensions, not " + weight.text());
  const int64_t padding = context.attributes().integer("padding_idx");
  context.require(
      padding >= -1 && padding < weight[0],
      "padding_idx " + std::to_string(padding) + " is not a row of weight " + weight.text());
  std::vector<int64_t> dims = to_attribute(context.shape(0));
  dims.push_back(weight[1]);
  context.set(0, to_shape(dims), context.dtype(1));
}

}  // namespace

FLEET_OP(embedding) {
  def.help =
      "the rows of weight [V, D] that ids (int32 or int64, 0 to V - 1) name; reads of row "
      "padding_idx give it no gradient";
  def.inputs = {{"ids"}, {"weight"}};
  def.outputs = {{"y"}};
  def.attributes = {{"padding_idx", int64_t{-1}}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.infer = infer_embedding;
  def.gradient = [](GradientContext& context) {
    if (!context.needs(1)) return;
    context.append("embedding_grad", {context.input(0), context.output_gradient(0)},
                   {context.input_gradient(1)},
                   {{"rows", context.input_var(1).shape[0]},
                    {"padding_idx", context.attributes().integer("padding_idx")}});
  };
}

// dweight[v, :] = sum of dy[i, :] over the i with ids[i] = v, in order. rows: V.
FLEET_OP(embedding_grad) {
  def.inputs = {{"ids"}, {"dy"}};
  def.outputs = {{"dweight"}};
  def.attributes = {{"rows", int64_t{0}}, {"padding_idx", int64_t{-1}}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.infer = [](ShapeContext& context) {
    const Shape& dy = context.shape(1);
    context.require(is_id_type(context.dtype(0)), "ids must be int32 or int64");
    context.require(dy.rank() == context.shape(0).rank() + 1, "dy does not fit ids");
    context.set(0, {context.attributes().integer("rows"), dy[dy.rank() - 1]}, context.dtype(1));
  };
}

}  // namespace fleet
