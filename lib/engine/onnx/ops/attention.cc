// attention and rope. The mask is computed from the inputs: batch and length stay open.
#include "ops/attention.h"

#include <limits>

#include "onnx/ops/parts.h"
#include "ops/rope_frequencies.h"

namespace fleet {
namespace {

using Integers = std::vector<int64_t>;

enum AttentionInput { kQ, kK, kV, kDocuments };

std::string unsqueezed(OnnxGraph& graph, const std::string& x, const Integers& axes) {
  return graph.node("Unsqueeze", {x, graph.integers(axes)});
}

// Whether each query (rows) sees each key: bool [S, S] by their order in the row; "" if it may.
std::string allowed_by_order(const OnnxContext& context) {
  if (!context.attributes().boolean("causal")) return "";
  OnnxGraph& graph = context.graph;
  const std::string length =
      graph.node("Shape", {context.input(kQ)}, {{"start", int64_t{1}}, {"end", int64_t{2}}});
  const std::string index =
      graph.node("Range", {graph.integer(0), graph.node("Squeeze", {length}), graph.integer(1)});
  const std::string queries = unsqueezed(graph, index, {1}), keys = unsqueezed(graph, index, {0});
  const std::string before = graph.node("LessOrEqual", {keys, queries});
  const int64_t window = context.attributes().integer("window");
  if (window == 0) return before;
  const std::string start = graph.node("Sub", {queries, graph.integer(window)});
  return graph.node("And", {before, graph.node("Greater", {keys, start})});
}

// Those of the same document: bool [B, S, S].
std::string allowed_by_documents(const OnnxContext& context) {
  const std::string documents = context.input(kDocuments);
  if (documents.empty()) return "";
  OnnxGraph& graph = context.graph;
  const std::string queries = unsqueezed(graph, documents, {2}),
                    keys = unsqueezed(graph, documents, {1});
  return graph.node("Equal", {queries, keys});
}

// A token always sees itself, so no row is without a finite score.
std::string masked(const OnnxContext& context, const std::string& scores, const Integers& heads) {
  OnnxGraph& graph = context.graph;
  const std::string order = allowed_by_order(context);
  std::string allowed = allowed_by_documents(context);
  if (!allowed.empty()) allowed = unsqueezed(graph, allowed, heads);
  if (!allowed.empty() && !order.empty()) allowed = graph.node("And", {allowed, order});
  if (allowed.empty()) allowed = order;
  if (allowed.empty()) return scores;
  return graph.node("Where", {allowed, scores, graph.number(std::numeric_limits<float>::lowest())});
}

std::string transposed(OnnxGraph& graph, const std::string& x, const Integers& perm) {
  return graph.node("Transpose", {x}, {{"perm", perm}});
}

}  // namespace

// Grouped queries have an axis of their own, so that MatMul broadcasts the heads of keys.
FLEET_ONNX(attention) {
  OnnxGraph& graph = context.graph;
  const bool packed = context.input(kK).empty();
  const Shape& shape = context.shape(kQ);
  const AttentionSizes sizes =
      attention_sizes(context.attributes(), shape, packed ? nullptr : &context.shape(kK));
  context.require(context.attributes().number("dropout") == 0, "in training");
  const int64_t heads = sizes.heads, kv = sizes.kv_heads, group = heads / kv, size = sizes.size;
  std::string q = context.input(kQ), k = context.input(kK), v = context.input(kV);
  if (packed) {
    k = onnx_slice(graph, q, 2, heads, heads + kv);
    v = onnx_slice(graph, q, 2, heads + kv, heads + 2 * kv);
    q = onnx_slice(graph, q, 2, 0, heads);
  }
  const float scale = attention_settings(context.attributes(), size).scale;
  q = graph.node("Mul", {q, graph.number(scale)});
  q = graph.node("Reshape", {q, graph.integers({0, 0, kv, group, size})});
  q = transposed(graph, q, {0, 2, 3, 1, 4});                       // [B, Hkv, G, S, D]
  k = unsqueezed(graph, transposed(graph, k, {0, 2, 3, 1}), {2});  // [B, Hkv, 1, D, S]
  v = unsqueezed(graph, transposed(graph, v, {0, 2, 1, 3}), {2});  // [B, Hkv, 1, S, D]
  const std::string scores = masked(context, graph.node("MatMul", {q, k}), {1, 2});
  const std::string weights = graph.node("Softmax", {scores}, {{"axis", int64_t{-1}}});
  const std::string y = transposed(graph, graph.node("MatMul", {weights, v}), {0, 3, 1, 2, 4});
  context.node("Reshape", {y, graph.integers({0, 0, heads, size})});
}

FLEET_ONNX(rope_table) {
  OnnxGraph& graph = context.graph;
  const RopeSettings settings(context.attributes());
  context.require(!settings.is_dynamic(), "of type dynamic");
  const std::string places = graph.node("Cast", {context.input(0)}, {{"to", kOnnxFloat}});
  const std::string angles =
      graph.node("Mul", {unsqueezed(graph, places, {2}), graph.numbers(settings.frequencies())});
  const std::string factor = graph.number(settings.attention_factor());
  for (const auto& [type, output] : {std::pair{"Cos", 0}, {"Sin", 1}}) {
    graph.node("Mul", {graph.node(type, {angles}), factor}, {},
               graph.name(context.op.outputs[static_cast<size_t>(output)]));
  }
}

FLEET_ONNX(rope) {
  OnnxGraph& graph = context.graph;
  const Shape& x = context.shape(0);
  const int64_t given = context.attributes().integer("heads"), heads = given ? given : x[2];
  const int64_t half = context.shape(1)[2], size = x[3];
  const std::string cos = unsqueezed(graph, context.input(1), {2}),
                    sin = unsqueezed(graph, context.input(2), {2});
  std::string turning = context.input(0);
  if (heads < x[2]) turning = onnx_slice(graph, turning, 2, 0, heads);
  const std::string a = onnx_slice(graph, turning, 3, 0, half),
                    b = onnx_slice(graph, turning, 3, half, 2 * half);
  const auto product = [&](const std::string& one, const std::string& other) {
    return graph.node("Mul", {one, other});
  };
  std::vector<std::string> parts = {graph.node("Sub", {product(a, cos), product(b, sin)}),
                                    graph.node("Add", {product(b, cos), product(a, sin)})};
  if (2 * half < size) parts.push_back(onnx_slice(graph, turning, 3, 2 * half, size));
  if (heads == x[2]) return context.node("Concat", parts, {{"axis", int64_t{3}}});
  const std::string turned = graph.node("Concat", parts, {{"axis", int64_t{3}}});
  const std::string rest = onnx_slice(graph, context.input(0), 2, heads, x[2]);
  context.node("Concat", {turned, rest}, {{"axis", int64_t{2}}});
}

}  // namespace fleet
