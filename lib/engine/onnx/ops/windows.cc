// Operations on the windows of an image's tokens.
#include "onnx/ops/parts.h"
#include "ops/image_windows.h"
#include "ops/window_coordinates.h"

namespace fleet {
namespace {

using Integers = std::vector<int64_t>;

// x rolled by `shift` places towards the start of an axis of `size`.
std::string rolled(OnnxGraph& graph, const std::string& x, int64_t axis, int64_t size,
                   int64_t shift) {
  if (shift % size == 0) return x;
  const std::string first = onnx_slice(graph, x, axis, 0, shift),
                    rest = onnx_slice(graph, x, axis, shift, size);
  return graph.node("Concat", {rest, first}, {{"axis", axis}});
}

std::string constant(OnnxGraph& graph, const std::string& name, const Shape& shape,
                     const std::vector<float>& values) {
  graph.tensor(name, shape, values.data());
  return name;
}

}  // namespace

FLEET_ONNX(window_split) {
  OnnxGraph& graph = context.graph;
  const ImageWindows windows = image_windows(context.attributes());
  const Shape& part = context.output_shape();
  const auto parts = static_cast<int64_t>(context.op.outputs.size());
  std::string x = rolled(graph, context.input(0), 1, windows.rows(), windows.shift_down);
  x = rolled(graph, x, 2, windows.columns(), windows.shift_right);
  const Integers places = {
      0,     windows.grid_rows, windows.height, windows.grid_columns, windows.width,
      parts, part[1],           part[3]};
  x = graph.node("Reshape", {x, graph.integers(places)});
  x = graph.node("Transpose", {x}, {{"perm", Integers{5, 0, 1, 3, 6, 2, 4, 7}}});
  for (int64_t p = 0; p < parts; ++p) {
    const std::string one = onnx_slice(graph, x, 0, p, p + 1);
    graph.node("Reshape", {one, graph.integers({-1, part[1], part[2], part[3]})}, {},
               graph.name(context.op.outputs[static_cast<size_t>(p)]));
  }
}

// One part: more than one only joins gradients.
FLEET_ONNX(window_join) {
  OnnxGraph& graph = context.graph;
  const ImageWindows windows = image_windows(context.attributes());
  context.require(context.op.inputs.size() == 1, "of several parts");
  const Shape& part = context.shape(0);
  const Integers places = {
      -1, windows.grid_rows, windows.grid_columns, part[1], windows.height, windows.width, part[3]};
  std::string x = graph.node("Reshape", {context.input(0), graph.integers(places)});
  x = graph.node("Transpose", {x}, {{"perm", Integers{0, 1, 4, 2, 5, 3, 6}}});
  x = graph.node("Reshape",
                 {x, graph.integers({-1, windows.rows(), windows.columns(), part[1] * part[3]})});
  x = rolled(graph, x, 1, windows.rows(), windows.rows() - windows.shift_down);
  x = rolled(graph, x, 2, windows.columns(), windows.columns() - windows.shift_right);
  context.node("Identity", {x});
}

FLEET_ONNX(window_softmax) {
  OnnxGraph& graph = context.graph;
  const ImageWindows windows = image_windows(context.attributes());
  const int64_t tokens = windows.tokens(), heads = context.shape(0)[1];
  Integers offsets;
  for (int64_t query = 0; query < tokens; ++query) {
    for (int64_t key = 0; key < tokens; ++key) offsets.push_back(windows.offset(query, key));
  }
  std::string bias =
      graph.node("Gather", {context.input(1), graph.integers(offsets)}, {{"axis", int64_t{0}}});
  bias = graph.node("Transpose", {bias}, {{"perm", Integers{1, 0}}});
  bias = graph.node("Reshape", {bias, graph.integers({heads, tokens, tokens})});
  const auto scale = static_cast<float>(context.attributes().number("scale"));
  std::string x = graph.node("Mul", {context.input(0), graph.number(scale)});
  x = graph.node("Add", {x, bias});
  if (windows.shifted()) {
    std::vector<float> mask;
    for (int64_t window = 0; window < windows.count(); ++window) {
      for (int64_t query = 0; query < tokens; ++query) {
        for (int64_t key = 0; key < tokens; ++key) {
          const bool same = windows.region(window, query) == windows.region(window, key);
          mask.push_back(same ? 0 : kOtherRegion);
        }
      }
    }
    const std::string added =
        constant(graph, context.output() + "/mask", {windows.count(), 1, tokens, tokens}, mask);
    x = graph.node("Reshape", {x, graph.integers({-1, windows.count(), heads, tokens, tokens})});
    x = graph.node("Add", {x, added});
    x = graph.node("Reshape", {x, graph.integers({-1, heads, tokens, tokens})});
  }
  context.node("Softmax", {x}, {{"axis", int64_t{-1}}});
}

FLEET_ONNX(window_coordinates) {
  constant(context.graph, context.output(), context.output_shape(),
           window_coordinates(context.attributes()));
}

}  // namespace fleet
