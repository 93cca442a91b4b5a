#include "onnx/export.h"

#include <charconv>

#include "base/file.h"
#include "base/log.h"
#include "base/regular_file.h"
#include "base/text.h"
#include "models/evaluated_network.h"
#include "models/text/language_models.h"
#include "models/training.h"
#include "onnx/network.h"
#include "proto/onnx.pb.h"
#include "tensor/host.h"
#include "train/job_task.h"
#include "train/trained_weights.h"

namespace fleet {
namespace {

namespace pb = onnx_proto;

constexpr char kImage[] = "image", kLogits[] = "logits", kPixelLogits[] = "pixel_logits";
constexpr int kIrVersion = 8;
constexpr int64_t kOnnxLength = 1;  // no operation of texts depends on it

// The image size that the weights were trained with, if their file states it; otherwise the job's.
Shape image_of(const Job& job, const ModelCard& card) {
  if (card.image.size() == 3) return Shape(card.image);
  return image_shape(job.model_name, job.data.integer("image.channels"),
                     job.data.integer("image.height"), job.data.integer("image.width"));
}

void describe(const OnnxPort& port, pb::ValueInfoProto* value) {
  value->set_name(port.name);
  pb::TypeProto::Tensor* tensor = value->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(port.dtype == DType::kInt64 ? pb::TensorProto::INT64
                                                    : pb::TensorProto::FLOAT);
  for (const std::string& dim : port.dims) {
    auto* shape = tensor->mutable_shape()->add_dim();
    int64_t size = 0;
    const char* end = dim.data() + dim.size();
    if (std::from_chars(dim.data(), end, size).ptr == end) {
      shape->set_dim_value(size);
    } else {
      shape->set_dim_param(dim);
    }
  }
}

std::string list_of(const std::vector<double>& values) {
  std::vector<std::string> texts;
  for (const double value : values) {
    char text[40];
    texts.emplace_back(text, std::to_chars(text, text + sizeof text, value).ptr);
  }
  return join(texts, ",");
}

void add_metadata(const Job& job, bool text, const ModelCard& card, pb::ModelProto* model) {
  const auto add = [&](const std::string& key, const std::string& value) {
    pb::StringStringEntryProto* entry = model->add_metadata_props();
    entry->set_key(key);
    entry->set_value(value);
  };
  add("model", job.model_name);
  if (!text) {
    add("mean", list_of(job.data.numbers("mean")));
    add("std", list_of(job.data.numbers("std")));
  }
  std::map<std::string, std::string> known;
  write_card(card, &known);
  for (const auto& [key, value] : known) add(key, value);
}

// Adds the parameters and statistics that nodes read.
void add_weights(const Program& program, Executor& weights, OnnxGraph* graph) {
  std::vector<bool> done(program.var_count());
  for (const Op& op : program.ops()) {
    for (const VarId id : op.inputs) {
      if (id == kNoVar || done[id]) continue;
      const Var& var = program.var(id);
      if (var.kind != VarKind::kParameter && var.kind != VarKind::kState) continue;
      done[id] = true;
      const std::vector<float> values = weights.values<float>(weights.program().find(var.name));
      graph->tensor(var.name, var.shape, values.data());
    }
  }
}

const OnnxExporter& exporter_of(const Op& op) {
  if (const OnnxExporter* exporter = onnx_exporter_registry().find(op.type())) return *exporter;
  throw Error(ErrorCode::kUnsupported, "ONNX has no equivalent of " + op.type(), "ONNX export",
              "choose a model without it");
}

// The bytes of a network that is built for kOnnxBatch samples.
std::string file_of(const Job& job, const OnnxNetwork& network, Executor& weights,
                    const ModelCard& card) {
  const Program& program = network.program;
  const std::string first = network.inputs.front().name;
  pb::ModelProto model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("fleetrun");
  model.add_opset_import()->set_version(kOnnxOperatorSet);
  add_metadata(job, first != kImage, card, &model);
  model.mutable_graph()->set_name(job.model_name);
  OnnxGraph graph(program, model.mutable_graph());
  for (const OnnxPort& port : network.inputs) describe(port, model.mutable_graph()->add_input());
  if (network.begin) network.begin(graph);
  for (const Op& op : program.ops()) {
    exporter_of(op).write({.graph = graph, .program = program, .op = op, .first = first});
  }
  for (const OnnxPort& port : network.outputs) {
    graph.node("Identity", {graph.name(port.var)}, {}, port.name);
    describe(port, model.mutable_graph()->add_output());
  }
  add_weights(program, weights, &graph);
  constexpr size_t kMaxBytes = (size_t{2} << 30) - 1;  // limit of a protobuf message
  if (model.ByteSizeLong() > kMaxBytes) {
    throw Error(ErrorCode::kUnsupported, "a network of 2 GiB or more does not fit into one file",
                "ONNX export", "choose a smaller one");
  }
  return model.SerializeAsString();
}

// The weights that count, in an executor of `network`; drops those of `weights`.
std::unique_ptr<Executor> loaded(const Job& job, OnnxNetwork network, Device& device,
                                 TrainedWeights* weights) {
  const std::vector<VarId> results = network.results();
  // A head of the training only.
  std::erase_if(weights->file.tensors, [&](const auto& entry) {
    return entry.first.starts_with("aux_classifier.") &&
           network.program.find(entry.first) == kNoVar;
  });
  auto executor = std::make_unique<Executor>(plan_program(std::move(network.program), results),
                                             device, nullptr);
  executor->initialize(static_cast<uint64_t>(job.train.integer("seed")));
  for (const std::string& line : load_trained_weights(job, weights, *executor)) {
    spdlog::info("{}", line);
  }
  if (!weights->warning.empty()) spdlog::warn("{}", weights->warning);
  return executor;
}

}  // namespace

std::vector<VarId> OnnxNetwork::results() const {
  std::vector<VarId> all;
  for (const OnnxPort& port : outputs) all.push_back(port.var);
  return all;
}

OnnxNetwork image_network(const Job& job, const Shape& image, int64_t batch) {
  const ModelDef& model = model_registry().get(job.model_name);
  const auto gives = [&](const char* name) {
    return std::ranges::find(model.outputs, name) != model.outputs.end();
  };
  const bool pixels = gives(kPixelLogits);
  if (model.inputs != std::vector<std::string>{kImage} || (!gives(kLogits) && !pixels)) {
    throw Error(ErrorCode::kUnsupported,
                "the model " + job.model_name + " does not turn an image into logits",
                "ONNX export", "export a classifier of images, or a language model");
  }
  const char* output = pixels ? kPixelLogits : kLogits;
  EvaluatedNetwork network =
      evaluated_network(job.model_name, job.model, {batch, image[0], image[1], image[2]}, {output});
  const VarId logits = network.outputs.at(output);
  OnnxNetwork built;
  built.program = std::move(network.program);
  std::vector<std::string> dims = {"batch"};
  for (int d = 0; d < 3; ++d) dims.push_back(std::to_string(image[d]));
  built.inputs = {{kImage, kNoVar, DType::kFloat32, dims}};
  const Shape& shape = built.program.var(logits).shape;
  std::vector<std::string> sizes = {"batch"};
  for (int d = 1; d < shape.rank(); ++d) sizes.push_back(std::to_string(shape[d]));
  built.outputs = {{output, logits, DType::kFloat32, sizes}};
  return built;
}

std::string onnx_file(const Job& job, const Shape& image, Executor& weights,
                      const ModelCard& card) {
  return file_of(job, image_network(job, image, kOnnxBatch), weights, card);
}

std::string text_onnx_file(const Job& job, const std::set<std::string>& outputs, Executor& weights,
                           const ModelCard& card) {
  return file_of(job, text_network(job, outputs, kOnnxBatch, kOnnxLength, kOnnxLength), weights,
                 card);
}

std::string export_onnx(const Job& job, const std::string& path) {
  const bool text = language_source(job.model_name, job.model).has_value();
  const std::set<std::string> outputs = text ? outputs_of(job) : std::set<std::string>();
  check_replaceable(path);
  TrainedWeights weights = trained_weights(job, "checkpoint.resume");
  weights.card.classes = class_names(job, weights);
  const Shape image = text ? Shape() : image_of(job, weights.card);
  HostDevice device;
  const std::unique_ptr<Executor> executor =
      loaded(job, text ? text_network(job, outputs, 1, kOnnxLength) : image_network(job, image, 1),
             device, &weights);
  const ModelCard& card = weights.card;
  write_file_atomically(path, text ? text_onnx_file(job, outputs, *executor, card)
                                   : onnx_file(job, image, *executor, card));
  return "wrote " + path + ": " + job.model_name +
         (text ? ", texts of any length" : " for images of " + image.text()) +
         ", a batch of any size, with " + weights.what;
}

}  // namespace fleet
