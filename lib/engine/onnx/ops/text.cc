// Operations of text models.
#include "onnx/exporter.h"

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

std::vector<std::string> halves(const OnnxContext& context, const std::string& x, int64_t end) {
  OnnxGraph& graph = context.graph;
  const std::string axis = graph.integers({-1}), middle = graph.integers({end / 2});
  return {graph.node("Slice", {x, graph.integers({0}), middle, axis}),
          graph.node("Slice", {x, middle, graph.integers({end}), axis})};
}

int64_t last_of(const Shape& shape) { return shape[shape.rank() - 1]; }

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
  const auto parts = halves(context, context.input(0), last_of(context.shape(0)));
  const std::string sigmoid = context.graph.node("Sigmoid", {parts[0]});
  context.node("Mul", {context.graph.node("Mul", {parts[0], sigmoid}), parts[1]});
}

}  // namespace fleet
