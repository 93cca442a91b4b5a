// Operations of text models.
#include <utility>

#include "onnx/ops/parts.h"

namespace fleet {
namespace {

using Integers = std::vector<int64_t>;

// ONNX has RMSNormalization only from operator set 23 on.
std::string rms_normalized(const OnnxContext& context, const std::string& x,
                           const std::string& scale) {
  OnnxGraph& graph = context.graph;
  const auto epsilon = static_cast<float>(context.attributes().number("epsilon"));
  const std::string mean =
      graph.node("ReduceMean", {graph.node("Mul", {x, x})}, {{"axes", Integers{-1}}});
  const std::string root = graph.node("Sqrt", {graph.node("Add", {mean, graph.number(epsilon)})});
  return graph.node("Mul", {graph.node("Div", {x, root}), scale}, {}, context.output());
}

// The sum of inputs 0 and 1, which is output 1.
std::string residual_sum(const OnnxContext& context) {
  return context.graph.node("Add", {context.input(0), context.input(1)}, {},
                            context.graph.name(context.op.outputs[1]));
}

// The size of input 0's last dimension.
std::pair<std::string, std::string> halves(const OnnxContext& context) {
  const Shape& x = context.shape(0);
  const int64_t axis = x.rank() - 1, size = x[x.rank() - 1];
  const std::string first = onnx_slice(context.graph, context.input(0), axis, 0, size / 2);
  return {first, onnx_slice(context.graph, context.input(0), axis, size / 2, size)};
}

}  // namespace

FLEET_ONNX(embedding) {
  context.node("Gather", {context.input(1), context.input(0)}, {{"axis", int64_t{0}}});
}

FLEET_ONNX(rms_norm) { rms_normalized(context, context.input(0), context.input(1)); }

FLEET_ONNX(add_rms_norm) { rms_normalized(context, residual_sum(context), context.input(2)); }

FLEET_ONNX(add_layer_norm) {
  context.require(!context.input(2).empty(), "without a scale");
  context.node("LayerNormalization", {residual_sum(context), context.input(2), context.input(3)},
               {{"axis", int64_t{-1}},
                {"epsilon", static_cast<float>(context.attributes().number("epsilon"))}});
}

FLEET_ONNX(swiglu) {
  const auto [gate, up] = halves(context);
  const std::string sigmoid = context.graph.node("Sigmoid", {gate});
  context.node("Mul", {context.graph.node("Mul", {gate, sigmoid}), up});
}

FLEET_ONNX(geglu) {
  const auto [gate, up] = halves(context);
  const bool approximate = context.attributes().boolean("approximate");
  context.node("Mul", {onnx_gelu(context.graph, gate, approximate), up});
}

FLEET_ONNX(gather_rows) {
  const std::string index =
      context.graph.node("Unsqueeze", {context.input(1), context.graph.integers({2})});
  context.node("GatherND", {context.input(0), index}, {{"batch_dims", int64_t{1}}});
}

}  // namespace fleet
