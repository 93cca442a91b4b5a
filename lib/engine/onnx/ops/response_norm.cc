#include "onnx/exporter.h"

namespace fleet {

FLEET_ONNX(global_response_norm) {
  OnnxGraph& graph = context.graph;
  const Shape& x = context.shape(0);
  std::vector<int64_t> between;
  for (int64_t axis = 1; axis < x.rank() - 1; ++axis) between.push_back(axis);
  const std::string norms = graph.node("ReduceL2", {context.input(0)}, {{"axes", between}});
  const std::string mean = graph.node("ReduceMean", {norms}, {{"axes", std::vector<int64_t>{-1}}});
  const auto epsilon = static_cast<float>(context.attributes().number("epsilon"));
  const std::string response =
      graph.node("Div", {norms, graph.node("Add", {mean, graph.number(epsilon)})});
  const std::string scaled =
      graph.node("Mul", {graph.node("Mul", {context.input(0), response}), context.input(1)});
  context.node("Add", {graph.node("Add", {context.input(0), scaled}), context.input(2)});
}

}  // namespace fleet
