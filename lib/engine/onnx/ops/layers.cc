// Convolutions, pooling, normalization and products.
#include "onnx/exporter.h"

namespace fleet {
namespace {

using Integers = std::vector<int64_t>;

// Of a pair: the same padding at the end as at the beginning.
Integers pads(const Integers& paddings) {
  if (paddings.size() == 4) return paddings;
  return {paddings[0], paddings[1], paddings[0], paddings[1]};
}

}  // namespace

FLEET_ONNX(conv2d) {
  const Attributes& attributes = context.attributes();
  context.require(attributes.text("input_activation").empty(), "with an activation");
  const Shape& weight = context.shape(1);
  context.node("Conv", {context.input(0), context.input(1), context.input(2)},
               {{"kernel_shape", Integers{weight[2], weight[3]}},
                {"strides", attributes.integers("strides")},
                {"pads", pads(attributes.integers("paddings"))},
                {"dilations", attributes.integers("dilations")},
                {"group", attributes.integer("groups")}});
}

FLEET_ONNX(batch_norm) {
  const Attributes& attributes = context.attributes();
  context.require(attributes.boolean("is_test"), "in training");
  context.require(attributes.text("activation").empty(), "with an activation");
  context.node(
      "BatchNormalization",
      {context.input(0), context.input(1), context.input(2), context.input(3), context.input(4)},
      {{"epsilon", static_cast<float>(attributes.number("epsilon"))}});
}

// When the number of windows is rounded up, padding at the end is chosen so that the same windows
// start: ONNX's own rounding lets some windows start beyond the image.
FLEET_ONNX(pool2d) {
  const Attributes& attributes = context.attributes();
  const bool max = attributes.text("type") == "max";
  if (attributes.boolean("global")) {
    return context.node(max ? "GlobalMaxPool" : "GlobalAveragePool", {context.input(0)});
  }
  const Integers &kernel = attributes.integers("kernel"), &strides = attributes.integers("strides");
  Integers padding = pads(attributes.integers("paddings"));
  if (attributes.boolean("ceil_mode")) {
    context.require(max || attributes.boolean("exclusive"),
                    "with ceil_mode and a mean over padding");
    for (int d = 0; d < 2; ++d) {
      const int64_t reach = (context.output_shape()[2 + d] - 1) * strides[d] + kernel[d];
      padding[2 + d] = std::max<int64_t>(0, reach - context.shape(0)[2 + d] - padding[d]);
    }
  }
  OnnxAttributes all = {{"kernel_shape", kernel}, {"strides", strides}, {"pads", padding}};
  if (!max) all["count_include_pad"] = int64_t{attributes.boolean("exclusive") ? 0 : 1};
  context.node(max ? "MaxPool" : "AveragePool", {context.input(0)}, all);
}

FLEET_ONNX(layer_norm) {
  const int64_t axis = context.attributes().integer("begin_norm_axis");
  const Shape& x = context.shape(0);
  context.require(!context.input(1).empty() && axis == x.rank() - 1,
                  "without a scale, or over several dimensions");
  context.node(
      "LayerNormalization", {context.input(0), context.input(1), context.input(2)},
      {{"axis", axis}, {"epsilon", static_cast<float>(context.attributes().number("epsilon"))}});
}

FLEET_ONNX(fc) {
  OnnxGraph& graph = context.graph;
  const int64_t axis = context.attributes().integer("axis");
  const Shape& x = context.shape(0);
  if (axis == 1) {
    std::string matrix = context.input(0);
    if (x.rank() > 2) matrix = graph.node("Flatten", {matrix}, {{"axis", int64_t{1}}});
    return context.node("Gemm", {matrix, context.input(1), context.input(2)},
                        {{"transB", int64_t{1}}});
  }
  context.require(axis == x.rank() - 1, "over several dimensions");
  const std::string weight =
      graph.node("Transpose", {context.input(1)}, {{"perm", Integers{1, 0}}});
  if (context.input(2).empty()) return context.node("MatMul", {context.input(0), weight});
  context.node("Add", {graph.node("MatMul", {context.input(0), weight}), context.input(2)});
}

FLEET_ONNX(matmul) {
  const auto turned = [&](int i, const char* attribute) {
    if (!context.attributes().boolean(attribute)) return context.input(i);
    Integers perm(context.shape(i).rank());
    for (size_t d = 0; d < perm.size(); ++d) perm[d] = static_cast<int64_t>(d);
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    return context.graph.node("Transpose", {context.input(i)}, {{"perm", perm}});
  };
  const std::string x = turned(0, "transpose_x"), y = turned(1, "transpose_y");
  context.node("MatMul", {x, y});
}

FLEET_ONNX(softmax) {
  context.node("Softmax", {context.input(0)}, {{"axis", context.attributes().integer("axis")}});
}

}  // namespace fleet
