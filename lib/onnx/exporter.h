// How operations become nodes of an ONNX graph: one exporter a type, each registered in a file of
// lib/onnx/ops. ONNX: https://onnx.ai/onnx/operators, operator set 17.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/registry.h"
#include "graph/program.h"

namespace fleet::onnx_proto {
class GraphProto;
}

namespace fleet {

inline constexpr int kOnnxOperatorSet = 17;

// An exported Program is built for this many samples, a prime that no other dimension has: what
// depends on the batch can so be told from what does not, and is left open in the graph.
inline constexpr int64_t kOnnxBatch = 999983;

using OnnxAttribute = std::variant<int64_t, float, std::string, std::vector<int64_t>>;
using OnnxAttributes = std::map<std::string, OnnxAttribute>;

// A graph that is being written. Values go by name; "" is an optional input that is not there.
class OnnxGraph {
 public:
  OnnxGraph(const Program& program, onnx_proto::GraphProto* graph)
      : program_(program), graph_(graph) {}

  // Of a variable: its own name; kNoVar: "".
  std::string name(VarId id) const;
  // Appends a node with one output, called `output`, or a fresh name where that is "". Returns it.
  std::string node(const std::string& type, const std::vector<std::string>& inputs,
                   const OnnxAttributes& attributes = {}, const std::string& output = {});
  // Constants, as initializers; return their names.
  std::string integers(const std::vector<int64_t>& values);
  std::string number(float value);
  void tensor(const std::string& name, const Shape& shape, const float* values);
  // A tensor of `shape` filled with value; a dimension kOnnxBatch is that of the variable `like`.
  void filled(const std::vector<int64_t>& shape, float value, const std::string& like,
              const std::string& output);

 private:
  std::string fresh() { return "onnx/" + std::to_string(made_++); }

  const Program& program_;
  onnx_proto::GraphProto* const graph_;
  int made_ = 0;
};

// What an exporter sees.
struct OnnxContext {
  OnnxGraph& graph;
  const Program& program;
  const Op& op;
  std::string image;  // the graph's input: the first dimension is the batch

  const Attributes& attributes() const { return op.attributes; }
  const Shape& shape(int input) const { return program.var(op.inputs[input]).shape; }
  const Shape& output_shape() const { return program.var(op.outputs[0]).shape; }
  std::string input(int i) const;  // "" where it is not there
  std::string output() const { return graph.name(op.outputs[0]); }
  // A node whose output is the operation's.
  void node(const std::string& type, const std::vector<std::string>& inputs,
            const OnnxAttributes& attributes = {}) const {
    graph.node(type, inputs, attributes, output());
  }
  // kUnsupported "ONNX has no form for pool2d with ..." unless the condition holds.
  void require(bool condition, const std::string& what) const;
};

struct OnnxExporter {
  std::function<void(const OnnxContext&)> write;
};

Registry<OnnxExporter>& onnx_exporter_registry();
bool register_onnx_exporter(const std::string& type, void (*write)(const OnnxContext&));

// FLEET_ONNX(relu) { context.node("Relu", {context.input(0)}); } in lib/onnx/ops/activations.cc.
#define FLEET_ONNX(name)                                              \
  static void write_onnx_##name(const ::fleet::OnnxContext& context); \
  [[maybe_unused]] static const bool registered_onnx_##name =         \
      ::fleet::register_onnx_exporter(#name, write_onnx_##name);      \
  static void write_onnx_##name(const ::fleet::OnnxContext& context)

}  // namespace fleet
