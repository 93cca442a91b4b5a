#include "train/teacher.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/file_status.h"
#include "base/home_folder.h"
#include "base/log.h"
#include "models/distillation.h"
#include "models/evaluated_network.h"
#include "train/initial_weights.h"
#include "train/job_task.h"
#include "train/network_of_weights.h"
#include "train/pretrained_job.h"
#include "train/pretrained_record.h"
#include "train/torch_file.h"

namespace fleet {
namespace {

constexpr char kKey[] = "train.distillation.weights", kPrefix[] = "unsaved.teacher.";

// The values of a list for each channel.
std::vector<double> spread(std::vector<double> values, int64_t channels, const char* key) {
  if (values.size() == 1) values.resize(static_cast<size_t>(channels), values[0]);
  if (std::ssize(values) == channels) return values;
  throw Error(ErrorCode::kUsage,
              std::to_string(values.size()) + " values, and the images have " +
                  std::to_string(channels) + " channels",
              key, "give one for each channel, or one for all");
}

// The model's keys of the tree, and the classes of the job.
Settings model_settings(const ConfigTree& tree, const std::string& model, const Job& job) {
  const std::string start = "model.";
  const Schema& schema = model_registry().get(model).schema;
  ConfigTree own;
  for (const std::string& path : tree.paths(start)) {
    const std::string key = path.substr(start.size());
    if (key != "name") own.set(key, *tree.peek(path), tree.origin(path));
  }
  // Refused later if it has no classes: then it is not a network of images.
  if (std::ranges::find(schema.keys(), "num_classes", &ConfigKey::path) != schema.keys().end()) {
    own.set("num_classes", std::to_string(classes_of(job)), "the model's");
  }
  return own.validate(schema);
}

void check_classes(const Teacher& teacher, const Job& job) {
  const auto record = find_record(teacher.weights);
  if (!record || record->classes < 0 || record->classes == classes_of(job)) return;
  throw Error(ErrorCode::kUsage,
              "the teacher has " + std::to_string(record->classes) + " classes (" + record->origin +
                  "), and the model " + std::to_string(classes_of(job)),
              teacher.weights, "choose a teacher of the same classes, or set model.num_classes");
}

// The image as the teacher expects it.
VarId teacher_image(Program& program, const Job& job, const Teacher& teacher,
                    const Training& training) {
  const auto emit = [&](const std::string& type, std::vector<VarId> inputs, Attributes attributes,
                        const std::string& name) {
    return program.emit(training.forward, type, std::move(inputs), std::move(attributes), name)[0];
  };
  if (const VarId pixels = training.feed("pixels"); pixels != kNoVar) {
    return emit("normalize_image", {pixels, training.feed("flip")},
                {{"mean", teacher.mean}, {"std", teacher.std}}, "teacher/image");
  }
  const VarId image = training.feed("image");
  const int64_t channels = program.var(image).shape[1];
  const std::vector<double> mean = spread(job.data.numbers("mean"), channels, "data.mean");
  const std::vector<double> std = spread(job.data.numbers("std"), channels, "data.std");
  if (mean == teacher.mean && std == teacher.std) return image;
  // (image * std + mean - teacher's mean) / teacher's std, by channel
  std::vector<VarId> parts;
  for (int64_t c = 0; c < channels; ++c) {
    const VarId channel = emit(
        "slice", {image}, {{"axis", int64_t{1}}, {"start", c}, {"end", c + 1}}, "teacher/channel");
    parts.push_back(emit("scale", {channel},
                         {{"scale", std[c] / teacher.std[c]},
                          {"bias", (mean[c] - teacher.mean[c]) / teacher.std[c]}},
                         "teacher/normalised"));
  }
  return parts.size() == 1 ? parts[0]
                           : emit("concat", parts, {{"axis", int64_t{1}}}, "teacher/image");
}

// image: N, C, H, W.
EvaluatedNetwork network_of(const Teacher& teacher, const Shape& image) {
  return evaluated_network(teacher.model, teacher.settings, image, {"logits"});
}

// Appends the operations of a network, with its parameters and statistics as states that no
// checkpoint holds. Returns its logits.
VarId append_network(const EvaluatedNetwork& network, VarId image, SectionId section,
                     Program* program) {
  std::map<VarId, VarId> known = {{kNoVar, kNoVar}, {network.image, image}};
  const auto moved = [&](VarId id) {
    if (const auto found = known.find(id); found != known.end()) return found->second;
    const Var& var = network.program.var(id);
    const bool lasts = var.kind == VarKind::kParameter || var.kind == VarKind::kState;
    return known[id] = lasts ? program->state(kPrefix + var.name, var.shape, var.init, var.dtype)
                             : program->temporary("teacher/" + var.name);
  };
  for (const Op& op : network.program.ops()) {
    std::vector<VarId> inputs, outputs;
    for (const VarId id : op.inputs) inputs.push_back(moved(id));
    for (const VarId id : op.outputs) outputs.push_back(moved(id));
    program->append(section, op.type(), inputs, outputs, op.attributes);
  }
  return moved(find_var(network.outputs, "logits"));
}

WeightsOptions options_of(const Teacher& teacher,
                          const std::map<std::string, std::string>& metadata) {
  return {.skip = {},
          .complete = true,
          .network = teacher.model,
          .record = find_record(teacher.weights, &metadata)};
}

// Those that evaluations of a checkpoint use: the averages, if it has them.
TensorFile evaluated_weights(const Teacher& teacher,
                             TensorFile (*read)(const std::string& file, bool average)) {
  return with_averages(teacher.weights, path_exists(teacher.weights + "/ema.safetensors"), read);
}

// Whether a file of a checkpoint is named, and evaluations of the checkpoint use another one.
bool leaves_averages_out(const std::string& weights) {
  const std::filesystem::path path(weights);
  return path.filename() == "model.safetensors" &&
         path_exists((path.parent_path() / "ema.safetensors").string());
}

// The image of the Program's training: N, C, H, W.
Shape image_of(const Program& program, const Training& training) {
  const VarId pixels = training.feed("pixels");
  if (pixels == kNoVar) return program.var(training.feed("image")).shape;
  const Shape& bytes = program.var(pixels).shape;  // N, H, W, and 1 or 4
  return {bytes[0], bytes[3] == 1 ? 1 : 3, bytes[1], bytes[2]};
}

// Sets what the record of the weights says, and the job does not.
void complete(Teacher* teacher, const Job& job) {
  ConfigTree tree;
  tree.set("checkpoint.weights", teacher->weights, kKey);
  if (!teacher->model.empty()) tree.set("model.name", teacher->model, "train.distillation.model");
  DerivedKeys derived;
  try {
    derived = derive_from_weights(&tree);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUsage || !teacher->model.empty()) throw;
    throw Error(error.code(), error.failure(), error.where(), "set train.distillation.model");
  }
  teacher->model = tree.peek("model.name").value_or("");
  teacher->settings = model_settings(tree, teacher->model, job);
  const auto numbers = [&](const std::string& key) {
    const auto text = tree.peek("data." + key);
    if (!text) return job.data.numbers(key);
    ConfigTree one;
    one.set(key, *text, kKey);
    return one.validate(Schema().numbers(key, {}, "")).numbers(key);
  };
  teacher->guessed = !derived.warnings.empty() && teacher->mean.empty();
  if (teacher->mean.empty()) teacher->mean = numbers("mean");
  if (teacher->std.empty()) teacher->std = numbers("std");
}

}  // namespace

bool has_teacher(const Job& job) {
  return distills(job.train) && !job.train.boolean("evaluate_only");
}

Teacher teacher_of(const Job& job) {
  Teacher teacher{.weights = expand_home(job.train.text("distillation.weights")),
                  .model = job.train.text("distillation.model"),
                  .settings = {},
                  .mean = job.train.numbers("distillation.mean"),
                  .std = job.train.numbers("distillation.std")};
  if (!path_exists(teacher.weights)) {
    throw Error(ErrorCode::kUsage, "the teacher's weights '" + teacher.weights + "' do not exist",
                kKey, "correct the path");
  }
  check_classes(teacher, job);
  complete(&teacher, job);
  const ModelPorts ports = ports_of(teacher.model, teacher.settings);
  if (ports.inputs != std::vector<std::string>{"image"} || !ports.gives({"logits"})) {
    throw Error(ErrorCode::kUsage, "the teacher '" + teacher.model + "' does not classify images",
                "train.distillation.model", "choose another network");
  }
  return teacher;
}

void append_teacher(Program& program, const Job& job, const Teacher& given, Training* training) {
  Teacher teacher = given;
  const Shape image = image_of(program, *training);
  teacher.mean = spread(teacher.mean, image[1], "train.distillation.mean");
  teacher.std = spread(teacher.std, image[1], "train.distillation.std");
  const VarId logits =
      append_network(network_of(teacher, image), teacher_image(program, job, teacher, *training),
                     training->forward, &program);
  append_distillation_loss(program, job.train, logits, training);
}

void distil(const Job& job, const ProgramOptions& options, BuiltProgram* built) {
  if (!has_teacher(job)) return;
  if (built->strategy->context().stages > 1) {
    throw Error(ErrorCode::kUsage,
                "cannot be combined with pipeline, whose stages are parts of the model alone",
                "train.distillation.weights", "remove it, or strategy.pipeline");
  }
  const Teacher teacher = teacher_of(job);
  append_teacher(built->program, job, teacher, &built->training);
  if (options.rank != 0) return;
  spdlog::info("teacher: {} of {}", teacher.model, teacher.weights);
  if (leaves_averages_out(teacher.weights)) {
    spdlog::warn(
        "teacher: {} has the weights without their average, which is in ema.safetensors of the "
        "folder; name the folder to take the average (train.distillation.weights)",
        teacher.weights);
  }
  if (!teacher.guessed) return;
  spdlog::warn(
      "{}: nothing says how the teacher's images were normalised: ImageNet's mean and std are "
      "guessed (train.distillation.mean, train.distillation.std)",
      teacher.weights);
}

void check_teacher(const Teacher& teacher, const Shape& image) {
  const std::string path = weights_file(teacher.weights);
  TensorFile file = evaluated_weights(teacher, open_weights);
  const WeightsOptions options = options_of(teacher, file.metadata);
  const EvaluatedNetwork network = network_of(teacher, {1, image[0], image[1], image[2]});
  check_weights(std::move(file), path, options, network.program);
}

std::vector<std::string> load_teacher(const Teacher& teacher, const Shape& image,
                                      Executor& executor) {
  const std::string path = weights_file(teacher.weights);
  TensorFile file = evaluated_weights(teacher, read_weights);
  const WeightsOptions options = options_of(teacher, file.metadata);
  const EvaluatedNetwork network = network_of(teacher, {1, image[0], image[1], image[2]});
  std::vector<std::string> lines = fit_weights(path, options, network.program, &file);
  for (const auto& [name, tensor] : file.tensors) {
    const VarId var = executor.program().find(kPrefix + name);
    FLEET_CHECK(var != kNoVar, "no teacher variable '" + name + "'");
    executor.write(var, tensor.values().span());
  }
  return lines;
}

}  // namespace fleet
