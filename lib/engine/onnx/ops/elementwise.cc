// Arithmetic on two operands, the second of which is broadcast over the first (ops/broadcast.h).
#include "onnx/exporter.h"

namespace fleet {
namespace {

// ONNX aligns the last dimensions: appends the dimensions missing after y's.
void write(const OnnxContext& context, const std::string& type) {
  OnnxGraph& graph = context.graph;
  const Shape &x = context.shape(0), &y = context.shape(1);
  const int64_t given = context.attributes().integer("axis");
  const int64_t axis = given == -1 ? x.rank() - y.rank() : given;
  std::string spread = context.input(1);
  std::vector<int64_t> missing;
  for (int64_t d = axis + y.rank(); d < x.rank(); ++d) missing.push_back(d - axis);
  if (!missing.empty()) spread = graph.node("Unsqueeze", {spread, graph.integers(missing)});
  context.node(type, {context.input(0), spread});
}

}  // namespace

FLEET_ONNX(elementwise_add) {
  const Attributes& attributes = context.attributes();
  context.require(attributes.text("activation").empty() && attributes.text("y_activation").empty(),
                  "with an activation");
  write(context, "Add");
}
FLEET_ONNX(elementwise_mul) { write(context, "Mul"); }
FLEET_ONNX(elementwise_sub) { write(context, "Sub"); }

}  // namespace fleet
