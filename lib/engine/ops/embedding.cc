// embedding: y[..., :] = weight[ids[...], :]. ids: int32 or int64 of any shape, each 0 to V - 1;
// weight: [V, D]. On the CPU another id is kUsage, naming its row; on a GPU its row of y is NaN.
//
// The gradient of a row of the weight sums the rows of dy that read it in the order of ids, so that
// it is the same on any number of threads. padding_idx: reads of this row give it no gradient, but
// return its values, as in PyTorch; -1: none.
//
// pooled: the last axis of ids [..., L] is a list, and y[..., :] is the sum of its rows, in order;
// an id of -1 stands for none, so that lists shorter than L end in it. An empty list is 0.
//
// sparse: the gradient has only the rows that ids name (embedding_grad_rows), and the update of the
// weight touches only these. For training with the optimizers that have such an update, with a
// weight that one embedding reads and nothing else; the annotation kSparseGradient asks for it.
#include "ops/embedding.h"

#include "graph/program.h"
#include "ops/mixed_precision.h"

namespace fleet {
namespace {

// The axes of y in front of its last one: those of ids, without that of a list.
Shape places_of(const Shape& ids, bool pooled) {
  std::vector<int64_t> dims = to_attribute(ids);
  if (pooled) dims.pop_back();
  return to_shape(dims);
}

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
  const bool pooled = context.attributes().boolean("pooled");
  context.require(
      !pooled || context.shape(0).rank() >= 2,
      "pooled ids " + context.shape(0).text() + " are not [..., places, ids of a place]");
  std::vector<int64_t> dims = to_attribute(places_of(context.shape(0), pooled));
  dims.push_back(weight[1]);
  context.set(0, to_shape(dims), context.dtype(1));
}

void check_gradient(ShapeContext& context) {
  const Shape &ids = context.shape(0), &dy = context.shape(1);
  const Shape places = places_of(ids, context.attributes().boolean("pooled"));
  context.require(is_id_type(context.dtype(0)), "ids must be int32 or int64");
  context.require(dy.rank() == places.rank() + 1, "dy does not fit ids");
}

}  // namespace

FLEET_OP(embedding) {
  def.help =
      "the rows of weight [V, D] that ids (int32 or int64, 0 to V - 1) name; reads of row "
      "padding_idx give it no gradient; pooled: the sum over the last dimension of ids, of which "
      "-1 "
      "is none; sparse: only the rows that are read are updated";
  def.inputs = {{"ids"}, {"weight"}};
  def.outputs = {{"y"}};
  def.attributes = {{"padding_idx", int64_t{-1}}, {"pooled", false}, {"sparse", false}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.infer = infer_embedding;
  def.gradient = [](GradientContext& context) {
    if (!context.needs(1)) return;
    Attributes attributes = {{"rows", context.input_var(1).shape[0]},
                             {"padding_idx", context.attributes().integer("padding_idx")},
                             {"pooled", context.attributes().boolean("pooled")}};
    if (context.attributes().boolean("sparse")) attributes.set(kSparseGradient, true);
    context.append("embedding_grad", {context.input(0), context.output_gradient(0)},
                   {context.input_gradient(1)}, attributes);
  };
}

// dweight[v, :] = sum of dy[i, :] over the i with ids[i] = v, in order (dy[i / L, :] if pooled).
// rows: V.
FLEET_OP(embedding_grad) {
  def.inputs = {{"ids"}, {"dy"}};
  def.outputs = {{"dweight"}};
  def.attributes = {{"rows", int64_t{0}}, {"padding_idx", int64_t{-1}}, {"pooled", false}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.infer = [](ShapeContext& context) {
    check_gradient(context);
    const Shape& dy = context.shape(1);
    context.set(0, {context.attributes().integer("rows"), dy[dy.rank() - 1]}, context.dtype(1));
  };
}

// The same sums, only of the rows that occur. Slot i of the outputs belongs to the i-th id in
// increasing order: if it is the first of its value, rows[i] is the id, and values[i, :] the sum of
// dy over that id, in the order of positions; else rows[i] is -1, and values[i, :] 0. pooled as
// above. padded: ids of -1 are none (the rows of several ranks behind one another are such ids,
// with their values).
FLEET_OP(embedding_grad_rows) {
  def.inputs = {{"ids"}, {"dy"}};
  def.outputs = {{"rows"}, {"values"}};
  def.attributes = {
      {"rows", int64_t{0}}, {"padding_idx", int64_t{-1}}, {"pooled", false}, {"padded", false}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.infer = [](ShapeContext& context) {
    check_gradient(context);
    const Shape &ids = context.shape(0), &dy = context.shape(1);
    context.set(0, {ids.elements()}, DType::kInt64);
    context.set(1, {ids.elements(), dy[dy.rank() - 1]}, context.dtype(1));
  };
}

}  // namespace fleet
