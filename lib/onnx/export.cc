#include "onnx/export.h"

#include <charconv>
#include <filesystem>

#include "base/file.h"
#include "base/log.h"
#include "base/regular_file.h"
#include "base/text.h"
#include "models/model.h"
#include "models/training.h"
#include "onnx/exporter.h"
#include "proto/onnx.pb.h"
#include "tensor/host.h"
#include "train/checkpoint.h"
#include "train/initial_weights.h"
#include "train/safetensors.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;
namespace pb = onnx_proto;

constexpr char kImage[] = "image", kLogits[] = "logits";
constexpr int kIrVersion = 8;

// The network as an evaluation computes it, alone.
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
  built.logits = model_registry().get(job.model_name).build(network, feed, job.model);
  return built;
}

// The size that the weights were trained with, where their file tells; else the job's.
Shape image_of(const Job& job, const ModelCard& card) {
  if (card.image.size() == 3) return Shape(card.image);
  return image_shape(job.model_name, job.data.integer("image.channels"),
                     job.data.integer("image.height"), job.data.integer("image.width"));
}

// What other formats tell of it is not known.
ModelCard card_of(const std::string& path) {
  return path.ends_with(".safetensors") ? read_card(read_safetensors(path).metadata) : ModelCard();
}

// A file of weights, and the line that says what it is.
struct WeightsFile {
  std::string path, what;
};

WeightsFile weights_of_checkpoint(const Job& job, const std::string& folder) {
  const std::string ema = folder + "/ema.safetensors";  // what evaluations and --predict use, too
  if (fs::exists(ema)) return {ema, "the average of the weights of " + folder};
  if (job.train.number("ema.decay") > 0) {
    spdlog::warn("{} has no average of the weights: these are the weights", folder);
  }
  return {folder + "/model.safetensors", "the weights of " + folder};
}

WeightsFile find_weights(const Job& job) {
  const std::string weights = job.checkpoint.text("weights");
  const std::string resume = job.checkpoint.text("resume");
  if (!weights.empty()) return {weights, weights};
  if (resume != "no" && resume != "auto") return weights_of_checkpoint(job, resume);
  std::string output = job.train.text("output");
  const std::string name = job.train.text("name").empty() ? job.model_name : job.train.text("name");
  if (output.empty()) output = "output/" + name + "/latest";
  const auto newest = latest_checkpoint(output + "/checkpoints");
  if (newest) return weights_of_checkpoint(job, *newest);
  throw Error(ErrorCode::kUsage, "there is no checkpoint to export", output + "/checkpoints",
              "set checkpoint.weights to a file, checkpoint.resume to a checkpoint's folder, or "
              "train.output to a run's");
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

// Of the parameters and statistics that nodes read.
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
  throw Error(ErrorCode::kUnsupported, "there is no form of " + op.type() + " in it", "ONNX export",
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
  constexpr size_t kMostBytes = (size_t{2} << 30) - 1;  // of a protobuf message
  if (model.ByteSizeLong() > kMostBytes) {
    throw Error(ErrorCode::kUnsupported, "a network of 2 GiB or more does not fit into one file",
                "ONNX export", "choose a smaller one");
  }
  return model.SerializeAsString();
}

std::string export_onnx(const Job& job, const std::string& path) {
  check_replaceable(path);
  const WeightsFile file = find_weights(job);
  const ModelCard card = card_of(file.path);
  const Shape image = image_of(job, card);
  HostDevice device;
  Evaluation network = evaluation_of(job, image, 1);
  Executor executor(make_plan(std::move(network.program), {network.logits}), device, nullptr);
  executor.initialize(static_cast<uint64_t>(job.train.integer("seed")));
  const bool given = file.path == job.checkpoint.text("weights");
  const WeightsOptions options{.skip = given ? job.checkpoint.texts("weights_skip")
                                             : std::vector<std::string>()};
  for (const std::string& line : load_weights(file.path, options, executor)) {
    spdlog::info("{}: {}", file.path, line);
  }
  write_file_atomically(path, onnx_file(job, image, executor, card));
  return "wrote " + path + ": " + job.model_name + " for images of " + image.text() +
         ", a batch of any size, with " + file.what;
}

}  // namespace fleet
