#include "onnx/export.h"

#include <charconv>

#include "base/file.h"
#include "base/log.h"
#include "base/regular_file.h"
#include "base/text.h"
#include "models/model.h"
#include "models/text/language_models.h"
#include "models/training.h"
#include "onnx/exporter.h"
#include "proto/onnx.pb.h"
#include "tensor/host.h"
#include "train/trained_weights.h"

namespace fleet {
namespace {

namespace pb = onnx_proto;

constexpr char kImage[] = "image", kLogits[] = "logits";
constexpr int kIrVersion = 8;

// The network of an evaluation only.
struct Evaluation {
  Program program;
  VarId logits = kNoVar;
};

Evaluation evaluation_of(const Job& job, const Shape& image, int64_t batch) {
  Evaluation built;
  const SectionId section =
      built.program.add_section("evaluate", {.training = false, .evaluation = true});
  const VarId feed =
      built.program.feed(kImage, DType::kFloat32, {batch, image[0], image[1], image[2]});
  Network network(built.program, section, false, kNoVar);
  const ModelDef& model = model_registry().get(job.model_name);
  if (model.inputs != std::vector<std::string>{kImage} ||
      std::ranges::find(model.outputs, kLogits) == model.outputs.end()) {
    throw Error(ErrorCode::kUnsupported,
                "the model " + job.model_name + " does not turn an image into logits",
                "ONNX export", "export a classifier of images");
  }
  const NamedVars inputs = {{kImage, feed}, {"sample_key", kNoVar}};
  built.logits = model.build(network, inputs, job.model).at(kLogits);
  return built;
}

// The image size that the weights were trained with, if their file states it; otherwise the job's.
Shape image_of(const Job& job, const ModelCard& card) {
  if (card.image.size() == 3) return Shape(card.image);
  return image_shape(job.model_name, job.data.integer("image.channels"),
                     job.data.integer("image.height"), job.data.integer("image.width"));
}

void describe(const std::string& name, std::vector<int64_t> dims, pb::ValueInfoProto* value) {
  value->set_name(name);
  pb::TypeProto::Tensor* tensor = value->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(pb::TensorProto::FLOAT);
  tensor->mutable_shape()->add_dim()->set_dim_param("batch");
  for (size_t d = 1; d < dims.size(); ++d) {
    tensor->mutable_shape()->add_dim()->set_dim_value(dims[d]);
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

void add_metadata(const Job& job, const ModelCard& card, pb::ModelProto* model) {
  const auto add = [&](const std::string& key, const std::string& value) {
    pb::StringStringEntryProto* entry = model->add_metadata_props();
    entry->set_key(key);
    entry->set_value(value);
  };
  add("model", job.model_name);
  add("mean", list_of(job.data.numbers("mean")));
  add("std", list_of(job.data.numbers("std")));
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

}  // namespace

std::string onnx_file(const Job& job, const Shape& image, Executor& weights,
                      const ModelCard& card) {
  const Evaluation network = evaluation_of(job, image, kOnnxBatch);
  const Program& program = network.program;
  pb::ModelProto model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("fleetrun");
  model.add_opset_import()->set_version(kOnnxOperatorSet);
  add_metadata(job, card, &model);
  model.mutable_graph()->set_name(job.model_name);
  OnnxGraph graph(program, model.mutable_graph());
  describe(kImage, {kOnnxBatch, image[0], image[1], image[2]}, model.mutable_graph()->add_input());
  for (const Op& op : program.ops()) {
    exporter_of(op).write({.graph = graph, .program = program, .op = op, .image = kImage});
  }
  graph.node("Identity", {graph.name(network.logits)}, {}, kLogits);
  describe(kLogits, {kOnnxBatch, program.var(network.logits).shape[1]},
           model.mutable_graph()->add_output());
  add_weights(program, weights, &graph);
  constexpr size_t kMaxBytes = (size_t{2} << 30) - 1;  // limit of a protobuf message
  if (model.ByteSizeLong() > kMaxBytes) {
    throw Error(ErrorCode::kUnsupported, "a network of 2 GiB or more does not fit into one file",
                "ONNX export", "choose a smaller one");
  }
  return model.SerializeAsString();
}

std::string export_onnx(const Job& job, const std::string& path) {
  if (language_source(job.model_name, job.model)) {
    throw Error(ErrorCode::kUsage, job.model_name + " is a language model", "ONNX export",
                "language models are exported with `fleetrun export --hf FOLDER`");
  }
  check_replaceable(path);
  TrainedWeights weights = trained_weights(job, "checkpoint.resume");
  weights.card.classes = class_names(job, weights);
  const Shape image = image_of(job, weights.card);
  HostDevice device;
  Evaluation network = evaluation_of(job, image, 1);
  Executor executor(plan_program(std::move(network.program), {network.logits}), device, nullptr);
  executor.initialize(static_cast<uint64_t>(job.train.integer("seed")));
  for (const std::string& line : load_trained_weights(job, &weights, executor)) {
    spdlog::info("{}", line);
  }
  if (!weights.warning.empty()) spdlog::warn("{}", weights.warning);
  write_file_atomically(path, onnx_file(job, image, executor, weights.card));
  return "wrote " + path + ": " + job.model_name + " for images of " + image.text() +
         ", a batch of any size, with " + weights.what;
}

}  // namespace fleet
