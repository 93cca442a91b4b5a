#include "onnx/ops/parts.h"

#include <numbers>

namespace fleet {

std::string onnx_slice(OnnxGraph& graph, const std::string& x, int64_t axis, int64_t start,
                       int64_t end) {
  const std::string first = graph.integers({start}), last = graph.integers({end});
  return graph.node("Slice", {x, first, last, graph.integers({axis})});
}

std::string onnx_gelu(OnnxGraph& graph, const std::string& x, bool approximate,
                      const std::string& output) {
  std::string inner;
  if (approximate) {
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
  return graph.node("Mul", {half, graph.node("Add", {inner, graph.number(1)})}, {}, output);
}

}  // namespace fleet
