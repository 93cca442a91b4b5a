#include "onnx/exporter.h"

#include "proto/onnx.pb.h"

namespace fleet {

namespace pb = onnx_proto;

std::string OnnxGraph::name(VarId id) const { return id == kNoVar ? "" : program_.var(id).name; }

static void set(pb::AttributeProto* to, const OnnxAttribute& value) {
  if (const auto* i = std::get_if<int64_t>(&value)) {
    to->set_type(pb::AttributeProto::INT);
    to->set_i(*i);
  } else if (const auto* f = std::get_if<float>(&value)) {
    to->set_type(pb::AttributeProto::FLOAT);
    to->set_f(*f);
  } else if (const auto* s = std::get_if<std::string>(&value)) {
    to->set_type(pb::AttributeProto::STRING);
    to->set_s(*s);
  } else {
    to->set_type(pb::AttributeProto::INTS);
    for (const int64_t one : std::get<std::vector<int64_t>>(value)) to->add_ints(one);
  }
}

std::string OnnxGraph::node(const std::string& type, const std::vector<std::string>& inputs,
                            const OnnxAttributes& attributes, const std::string& output) {
  pb::NodeProto* node = graph_->add_node();
  const std::string out = output.empty() ? fresh() : output;
  node->set_op_type(type);
  node->set_name(out);
  node->add_output(out);
  size_t count = inputs.size();
  while (count > 0 && inputs[count - 1].empty()) --count;  // trailing optional inputs
  for (size_t i = 0; i < count; ++i) node->add_input(inputs[i]);
  for (const auto& [name, value] : attributes) {
    pb::AttributeProto* attribute = node->add_attribute();
    attribute->set_name(name);
    set(attribute, value);
  }
  return out;
}

static pb::TensorProto* add_tensor(pb::GraphProto* graph, const std::string& name,
                                   pb::TensorProto::DataType type) {
  pb::TensorProto* tensor = graph->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(type);
  return tensor;
}

std::string OnnxGraph::integers(const std::vector<int64_t>& values) {
  pb::TensorProto* tensor = add_tensor(graph_, fresh(), pb::TensorProto::INT64);
  tensor->add_dims(static_cast<int64_t>(values.size()));
  tensor->set_raw_data(values.data(), values.size() * sizeof(int64_t));
  return tensor->name();
}

std::string OnnxGraph::number(float value) {
  pb::TensorProto* tensor = add_tensor(graph_, fresh(), pb::TensorProto::FLOAT);
  tensor->set_raw_data(&value, sizeof value);
  return tensor->name();
}

std::string OnnxGraph::integer(int64_t value) {
  pb::TensorProto* tensor = add_tensor(graph_, fresh(), pb::TensorProto::INT64);
  tensor->set_raw_data(&value, sizeof value);
  return tensor->name();
}

std::string OnnxGraph::numbers(const std::vector<float>& values) {
  const std::string name = fresh();
  tensor(name, Shape{static_cast<int64_t>(values.size())}, values.data());
  return name;
}

void OnnxGraph::tensor(const std::string& name, const Shape& shape, const float* values) {
  pb::TensorProto* tensor = add_tensor(graph_, name, pb::TensorProto::FLOAT);
  for (const int64_t dim : shape) tensor->add_dims(dim);
  tensor->set_raw_data(values, static_cast<size_t>(shape.elements()) * sizeof(float));
}

void OnnxGraph::filled(const std::vector<int64_t>& shape, float value, const std::string& like,
                       const std::string& output) {
  const bool open = !shape.empty() && shape[0] == kOnnxBatch;
  std::string dims;
  if (open) {
    const std::string batch = node("Shape", {like}, {{"start", int64_t{0}}, {"end", int64_t{1}}});
    const std::vector<int64_t> rest(shape.begin() + 1, shape.end());
    dims = node("Concat", {batch, integers(rest)}, {{"axis", int64_t{0}}});
  } else {
    dims = integers(shape);
  }
  node("Expand", {number(value), dims}, {}, output);
}

std::string OnnxContext::input(int i) const {
  return i < static_cast<int>(op.inputs.size()) ? graph.name(op.inputs[i]) : "";
}

void OnnxContext::require(bool condition, const std::string& what) const {
  if (condition) return;
  throw Error(ErrorCode::kUnsupported, "ONNX has no equivalent of " + op.type() + " " + what,
              "ONNX export");
}

Registry<OnnxExporter>& onnx_exporter_registry() {
  static Registry<OnnxExporter> registry("ONNX exporter");
  return registry;
}

bool register_onnx_exporter(const std::string& type, void (*write)(const OnnxContext&)) {
  onnx_exporter_registry().add(type, {write});
  return true;
}

}  // namespace fleet
