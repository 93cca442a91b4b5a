// Elementwise operations with one operand.
#include "onnx/ops/parts.h"

namespace fleet {

FLEET_ONNX(relu) { context.node("Relu", {context.input(0)}); }
FLEET_ONNX(sigmoid) { context.node("Sigmoid", {context.input(0)}); }
FLEET_ONNX(tanh) { context.node("Tanh", {context.input(0)}); }
FLEET_ONNX(hardswish) { context.node("HardSwish", {context.input(0)}); }

FLEET_ONNX(exp) { context.node("Exp", {context.input(0)}); }

FLEET_ONNX(clip) {
  OnnxGraph& graph = context.graph;
  const auto bound = [&](const char* name) {
    return graph.number(static_cast<float>(context.attributes().number(name)));
  };
  const std::string min = bound("min"), max = bound("max");
  context.node("Clip", {context.input(0), min, max});
}

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

FLEET_ONNX(gelu) {
  onnx_gelu(context.graph, context.input(0), context.attributes().boolean("approximate"),
            context.output());
}

FLEET_ONNX(cast) {
  const std::string& to = context.attributes().text("to");
  context.require(to == "float32" || to == "int64", "to " + to);
  context.node("Cast", {context.input(0)}, {{"to", to == "int64" ? kOnnxInt64 : kOnnxFloat}});
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
