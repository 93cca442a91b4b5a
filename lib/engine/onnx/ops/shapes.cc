// Operations that move elements. The batch dimension of shapes stays dynamic.
#include "onnx/exporter.h"

namespace fleet {
namespace {

using Integers = std::vector<int64_t>;

}  // namespace

FLEET_ONNX(concat) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < context.op.inputs.size(); ++i) {
    parts.push_back(context.input(static_cast<int>(i)));
  }
  context.node("Concat", parts, {{"axis", context.attributes().integer("axis")}});
}

FLEET_ONNX(transpose) {
  context.node("Transpose", {context.input(0)}, {{"perm", context.attributes().integers("perm")}});
}

FLEET_ONNX(flatten) {
  Integers shape(static_cast<size_t>(context.attributes().integer("start_axis")), 0);
  shape.push_back(-1);
  context.node("Reshape", {context.input(0), context.graph.integers(shape)});
}

// 0 and -1 have the same meaning in ONNX.
FLEET_ONNX(reshape) {
  Integers shape = context.attributes().integers("shape");
  for (size_t d = 0; d < shape.size(); ++d) {
    context.require(shape[d] % kOnnxBatch != 0 || shape[d] == 0,
                    "to " + std::to_string(shape[d] / kOnnxBatch) + " times the batch");
  }
  context.node("Reshape", {context.input(0), context.graph.integers(shape)});
}

// `sizes` has the batch and the channels of x, whatever they are.
FLEET_ONNX(resize_bilinear) {
  const Integers& size = context.attributes().integers("size");
  OnnxGraph& graph = context.graph;
  const std::string shape = graph.node("Shape", {context.input(0)});
  const std::string kept =
      graph.node("Slice", {shape, graph.integers({0}), graph.integers({2}), graph.integers({0})});
  const std::string sizes =
      graph.node("Concat", {kept, graph.integers({size[0], size[1]})}, {{"axis", int64_t{0}}});
  context.node("Resize", {context.input(0), "", "", sizes},
               {{"mode", std::string("linear")},
                {"coordinate_transformation_mode", std::string("half_pixel")}});
}

FLEET_ONNX(slice) {
  OnnxGraph& graph = context.graph;
  const auto one = [&](const char* name) {
    return graph.integers({context.attributes().integer(name)});
  };
  const std::string start = one("start"), end = one("end"), axis = one("axis");
  context.node("Slice", {context.input(0), start, end, axis});
}

FLEET_ONNX(fill) {
  const Attributes& attributes = context.attributes();
  context.require(attributes.text("dtype") == "float32", "with " + attributes.text("dtype"));
  context.graph.filled(attributes.integers("shape"), static_cast<float>(attributes.number("value")),
                       context.first, context.output());
}

}  // namespace fleet
