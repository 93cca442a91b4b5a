// Elementwise operations with one operand.
#include <numbers>

#include "onnx/exporter.h"

namespace fleet {

FLEET_ONNX(relu) { context.node("Relu", {context.input(0)}); }
FLEET_ONNX(sigmoid) { context.node("Sigmoid", {context.input(0)}); }
FLEET_ONNX(tanh) { context.node("Tanh", {context.input(0)}); }
FLEET_ONNX(hardswish) { context.node("HardSwish", {context.input(0)}); }

FLEET_ONNX(hardsigmoid) {
  context.node("HardSigmoid", {context.input(0)}, {{"alpha", 1.0f / 6}, {"beta", 0.5f}});
}

FLEET_ONNX(relu6) {
  OnnxGraph& graph = context.graph;
  context.node("Clip", {context.input(0), graph.number(0), graph.number(6)});
}

FLEET_ONNX(silu) {
  context.node("Mul", {context.input(0), context.graph.node("Sigmoid", {context.input(0)})});
}

// Written as a formula: ONNX has Gelu only from operator set 20 on.
FLEET_ONNX(gelu) {
  OnnxGraph& graph = context.graph;
  const std::string x = context.input(0);
  std::string inner;
  if (context.attributes().boolean("approximate")) {
    const std::string square = graph.node("Mul", {x, x});
    const std::string slope =
        graph.node("Add", {graph.node("Mul", {square, graph.number(0.044715f)}), graph.number(1)});
    const float scale = 2 * static_cast<float>(std::numbers::inv_sqrtpi / std::numbers::sqrt2);
    const std::string scaled = graph.node("Mul", {x, graph.number(scale)});
    inner = graph.node("Tanh", {graph.node("Mul", {scaled, slope})});
  } else {
    const float root = static_cast<float>(1 / std::numbers::sqrt2);
    inner = graph.node("Erf", {graph.node("Mul", {x, graph.number(root)})});
  }
  const std::string half = graph.node("Mul", {x, graph.number(0.5f)});
  context.node("Mul", {half, graph.node("Add", {inner, graph.number(1)})});
}

FLEET_ONNX(scale) {
  OnnxGraph& graph = context.graph;
  const auto factor = static_cast<float>(context.attributes().number("scale"));
  const auto bias = static_cast<float>(context.attributes().number("bias"));
  if (bias == 0) return context.node("Mul", {context.input(0), graph.number(factor)});
  context.node("Add",
               {graph.node("Mul", {context.input(0), graph.number(factor)}), graph.number(bias)});
}

}  // namespace fleet
