// Converts operations to nodes of an ONNX graph: one exporter per type, each registered in a file
// of lib/engine/onnx/ops. ONNX: https://onnx.ai/onnx/operators, operator set 17.
#pragma once

#include <functional>
#include <map>
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

// An exported Program is built for this many samples, a prime that no other dimension has.
// Dimensions that depend on the batch are recognized by it and become dynamic in the graph.
inline constexpr int64_t kOnnxBatch = 999983;

// Element types in ONNX (TensorProto.DataType).
inline constexpr int64_t kOnnxFloat = 1, kOnnxInt64 = 7;

using OnnxAttribute = std::variant<int64_t, float, std::string, std::vector<int64_t>>;
using OnnxAttributes = std::map<std::string, OnnxAttribute>;

// A graph under construction. Values are referenced by name; "" is an absent optional input.
class OnnxGraph {
 public:
  OnnxGraph(const Program& program, onnx_proto::GraphProto* graph)
      : program_(program), graph_(graph) {}

  // The name of a variable; "" for kNoVar.
  std::string name(VarId id) const;
  // Appends a node with one output named `output`, or a new name if that is "". Returns the name.
  std::string node(const std::string& type, const std::vector<std::string>& inputs,
                   const OnnxAttributes& attributes = {}, const std::string& output = {});
  // Constants, as initializers; return their names.
  std::string integers(const std::vector<int64_t>& values);
  std::string number(float value);                        // without dimensions
  std::string integer(int64_t value);                     // the same
  std::string numbers(const std::vector<float>& values);  // [values]
  void tensor(const std::string& name, const Shape& shape, const float* values);
  // A tensor of `shape` filled with value; a dimension kOnnxBatch takes the batch size of variable
  // `like`.
  void filled(const std::vector<int64_t>& shape, float value, const std::string& like,
              const std::string& output);

 private:
  std::string fresh() { return "onnx/" + std::to_string(made_++); }

  const Program& program_;
  onnx_proto::GraphProto* const graph_;
  int made_ = 0;
};

// The argument of an exporter.
struct OnnxContext {
  OnnxGraph& graph;
  const Program& program;
  const Op& op;
  std::string first;  // the graph's first input: its first dimension is the batch

  const Attributes& attributes() const { return op.attributes; }
  const Shape& shape(int input) const { return program.var(op.inputs[input]).shape; }
  const Shape& output_shape() const { return program.var(op.outputs[0]).shape; }
  std::string input(int i) const;  // "" if absent
  std::string output() const { return graph.name(op.outputs[0]); }
  // A node whose output is the operation's.
  void node(const std::string& type, const std::vector<std::string>& inputs,
            const OnnxAttributes& attributes = {}) const {
    graph.node(type, inputs, attributes, output());
  }
  // kUnsupported "ONNX has no equivalent of pool2d with ..." unless the condition holds.
  void require(bool condition, const std::string& what) const;
};

struct OnnxExporter {
  std::function<void(const OnnxContext&)> write;
};

Registry<OnnxExporter>& onnx_exporter_registry();
bool register_onnx_exporter(const std::string& type, void (*write)(const OnnxContext&));

// FLEET_ONNX(relu) { context.node("Relu", {context.input(0)}); } in
// lib/engine/onnx/ops/activations.cc.
#define FLEET_ONNX(name)                                           \
  FLEET_REGISTER(onnx_##name, const ::fleet::OnnxContext& context, \
                 ::fleet::register_onnx_exporter, #name)

}  // namespace fleet
