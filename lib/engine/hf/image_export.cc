#include "hf/image_export.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/file_status.h"
#include "base/log.h"
#include "models/model.h"
#include "train/image_weights.h"
#include "train/job_task.h"
#include "train/network_of_weights.h"
#include "train/pretrained_record.h"
#include "train/torch_writer.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;

struct ExportedNetwork {
  const WeightLayout* layout = nullptr;
  Shape image;
  Program program;
  TensorShapes ours;
  TrainedWeights weights;
  std::vector<std::string> classes;
};

[[noreturn]] void refuse_network(const Job& job, const std::string& library) {
  throw Error(ErrorCode::kUnsupported, library + " has no network '" + job.model_name + "'",
              "model.name", "export it as ONNX: --onnx FILE");
}

Shape size_of_images(const Job& job, const ModelCard& card) {
  if (card.image.size() == 3) return Shape(card.image);
  return image_of_columns(expected_columns(job));
}

// The network of the job and its weights, under our names and complete.
ExportedNetwork network_to_export(const Job& job, const std::string& library) {
  ExportedNetwork network;
  network.layout = find_weight_layout(job.model_name);
  if (!network.layout) refuse_network(job, library);
  network.weights = trained_weights(job, "checkpoint.resume");
  TrainedWeights& weights = network.weights;
  for (const std::string& line : weights.lines) spdlog::info("{}: {}", weights.paths[0], line);
  network.image = size_of_images(job, weights.card);
  network.program = network_program(job.model_name, &job.model, network.image);
  network.ours = tensors_of_network(network.program);
  network.classes = class_names(job, weights);
  fit_image_weights(*network.layout, network.program, weights.paths[0], {.record = weights.record},
                    &weights.file);
  for (const auto& [name, shape] : network.ours) {
    const auto found = weights.file.tensors.find(name);
    if (found != weights.file.tensors.end() && found->second.shape == shape) continue;
    const std::string what = found == weights.file.tensors.end()
                                 ? "has no '" + name + "'"
                                 : "'" + name + "' is " + found->second.shape.text() +
                                       ", the model's is " + shape.text();
    throw Error(ErrorCode::kUsage, what, weights.paths[0],
                "use weights of this network after its training");
  }
  return network;
}

// The first `rows` rows from `begin` of a tensor's bytes.
HostTensor rows_of(const HostTensor& whole, int64_t begin, const Shape& shape) {
  const TensorBytes from = whole.values();
  const size_t row = from.size() / static_cast<size_t>(std::max<int64_t>(whole.shape[0], 1));
  HostTensor part{whole.dtype, shape, TensorBytes(row * static_cast<size_t>(shape[0]))};
  std::memcpy(part.data.data(), from.data() + static_cast<size_t>(begin) * row, part.data.size());
  return part;
}

// timm's name of one of our layers.
std::string layer_in_timm(const LayoutNames& names, const std::string& ours) {
  const auto found = names.find(ours + ".weight");
  if (found == names.end()) return ours;
  const std::string& name = found->second[0].name;
  return name.substr(0, name.rfind('.'));
}

std::string first_layer(const Program& program) {
  for (const VarId id : program.parameters()) {
    const Var& var = program.var(id);
    if (var.shape.rank() == 4) return var.name.substr(0, var.name.rfind('.'));
  }
  return "";
}

// The epsilon of batch norms, if they have one; 0: none, or several.
double norm_epsilon(const Program& program) {
  double common = 0;
  for (const Op& op : program.ops()) {
    if (op.type() != "batch_norm") continue;
    const double epsilon = op.attributes.number("epsilon");
    if (common != 0 && common != epsilon) return 0;
    common = epsilon;
  }
  return common;
}

std::vector<double> per_channel(std::vector<double> values, int64_t channels) {
  if (values.size() == 1) values.resize(static_cast<size_t>(channels), values[0]);
  return values;
}

// Whether the job has another value than a network of this name has by default.
bool is_changed(const Job& job, const std::string& key) {
  if (!job.model.has(key)) return false;
  for (const ConfigKey& known : model_registry().get(job.model_name).schema.keys()) {
    if (known.path == key) return !known.initial || known.initial->text() != job.model.json(key);
  }
  return false;
}

bool has_windows(const Program& program) {
  return std::any_of(program.ops().begin(), program.ops().end(),
                     [](const Op& op) { return op.type() == "window_softmax"; });
}

// timm and torchvision differ where a map is smaller than a window, or is padded and shifted.
void check_windows(const Job& job, const Shape& image) {
  if (!job.model.has("window_rule") || job.model.text("window_rule") == "timm") return;
  constexpr int64_t kPatch = 4;
  constexpr int kStages = 4;
  const int64_t window = job.model.integer("window");
  for (int axis = 1; axis < 3; ++axis) {
    int64_t map = image[axis] / kPatch;
    for (int stage = 0; stage < kStages; ++stage, map = (map + 1) / 2) {
      if (map % window == 0) continue;
      throw Error(ErrorCode::kUnsupported,
                  "timm cuts images of " + std::to_string(image[1]) + " x " +
                      std::to_string(image[2]) + " into other windows than this network",
                  "model.window_rule", "train with model.window_rule=timm, or use --onnx");
    }
  }
}

// What timm's function of this network must be told, because its own value is another.
Json model_arguments(const Job& job, const Program& program, const std::string& architecture,
                     const Shape& image) {
  Json arguments = Json::object();
  const Shape usual = model_registry().get(job.model_name).image;
  const std::vector<VarId> parameters = program.parameters();
  const bool positions = std::any_of(parameters.begin(), parameters.end(), [&](VarId id) {
    return program.var(id).name.find("pos_embed") != std::string::npos;
  });
  if ((positions || has_windows(program)) && (image[1] != usual[1] || image[2] != usual[2])) {
    arguments["img_size"] = std::vector<int64_t>{image[1], image[2]};
  }
  if (image[0] != 3) arguments["in_chans"] = image[0];
  if (is_changed(job, "patch")) arguments["patch_size"] = job.model.integer("patch");
  if (is_changed(job, "window")) arguments["window_size"] = job.model.integer("window");
  if (is_changed(job, "trained_windows")) {
    arguments["pretrained_window_sizes"] = job.model.integers("trained_windows");
  }
  const double own = architecture.starts_with("tf_") ? 1e-3 : 1e-5;
  const double epsilon = norm_epsilon(program);
  const bool takes_epsilon = architecture.find("efficientnet") != std::string::npos ||
                             architecture.find("mobilenet") != std::string::npos;
  if (takes_epsilon && epsilon != 0 && epsilon != own) arguments["bn_eps"] = epsilon;
  return arguments;
}

void check_export_folder(const std::string& folder) {
  if (!path_exists(folder)) return;
  if (!is_folder(folder)) throw Error(ErrorCode::kUsage, "is not a folder", folder, "use a folder");
  std::error_code error;
  if (fs::is_empty(folder, error) || path_exists(folder + "/config.json")) return;
  throw Error(ErrorCode::kUsage, "has other files, but no config.json", folder,
              "use a new folder, or one of an earlier export");
}

}  // namespace

Json timm_config(const Job& job, const Program& program, const WeightLayout& layout,
                 const Shape& image, const std::vector<std::string>& classes) {
  const LayoutNames names = timm_tensors(layout, tensors_of_network(program));
  std::string architecture = timm_network(job.model_name);
  const bool tensorflow = job.model.has("same_padding") && job.model.boolean("same_padding");
  if (tensorflow && !architecture.starts_with("tf_")) architecture = "tf_" + architecture;
  const int64_t count = classes_of(job);
  const int64_t resize = job.data.integer("eval.resize");
  double crop = job.data.number("eval.crop_pct");
  if (crop == 0 && resize > 0) {
    crop = static_cast<double>(std::max(image[1], image[2])) / static_cast<double>(resize);
  }
  std::string filter = job.data.text("interpolation");
  if (filter == "float_bilinear") filter = "bilinear";
  Json config = Json::object();
  config["architecture"] = architecture;
  config["num_classes"] = count;
  if (!classes.empty()) config["label_names"] = classes;
  const Json arguments = model_arguments(job, program, architecture, image);
  if (!arguments.empty()) config["model_args"] = arguments;
  Json pretrained = Json::object();
  pretrained["tag"] = "fleetrun";
  pretrained["custom_load"] = false;
  pretrained["input_size"] = std::vector<int64_t>{image[0], image[1], image[2]};
  pretrained["interpolation"] = filter;
  pretrained["crop_pct"] = crop > 0 ? crop : 1.0;
  pretrained["crop_mode"] = job.data.text("eval.crop_mode");
  pretrained["mean"] = per_channel(job.data.numbers("mean"), image[0]);
  pretrained["std"] = per_channel(job.data.numbers("std"), image[0]);
  pretrained["num_classes"] = count;
  pretrained["first_conv"] = layer_in_timm(names, first_layer(program));
  pretrained["classifier"] = layer_in_timm(names, last_layer(program));
  config["pretrained_cfg"] = pretrained;
  return config;
}

TensorFile timm_file(const WeightLayout& layout, const TensorShapes& ours, const TensorFile& file) {
  TensorFile renamed;
  renamed.metadata["format"] = "pt";
  for (const auto& [name, parts] : timm_tensors(layout, ours)) {
    const HostTensor& whole = file.tensors.at(name);
    if (parts.size() == 1) {
      HostTensor& tensor = renamed.tensors[parts[0].name] = whole;
      tensor.shape = parts[0].shape;
      continue;
    }
    int64_t row = 0;
    for (const LayoutTensor& part : parts) {
      if (!part.name.empty()) renamed.tensors[part.name] = rows_of(whole, row, part.shape);
      row += part.shape[0];
    }
  }
  return renamed;
}

std::string export_timm(const Job& job, const std::string& folder) {
  const WeightLayout* layout = find_weight_layout(job.model_name);
  if (!layout || !layout->in_timm) refuse_network(job, "timm");
  check_export_folder(folder);
  const ExportedNetwork network = network_to_export(job, "timm");
  check_windows(job, network.image);
  const Json config = timm_config(job, network.program, *layout, network.image, network.classes);
  make_directories(folder);
  write_safetensors(folder + "/model.safetensors",
                    timm_file(*layout, network.ours, network.weights.file));
  write_file_atomically(folder + "/config.json", config.dump_lossy(2) + "\n");
  return "wrote " + folder + ": " + config.at("architecture").get<std::string>() +
         " of timm for images of " + network.image.text() + ", with " + network.weights.what;
}

std::string export_torchvision(const Job& job, const std::string& path) {
  if (!in_torchvision(job.model_name)) refuse_network(job, "torchvision");
  const ExportedNetwork network = network_to_export(job, "torchvision");
  TensorFile file;
  for (const auto& [name, shape] : network.ours) {
    file.tensors[name] = network.weights.file.tensors.at(name);
  }
  if (path.ends_with(".safetensors")) {
    file.metadata["format"] = "pt";
    write_safetensors(path, file);
  } else {
    write_torch_file(path, file);
  }
  return "wrote " + path + ": " + job.model_name + " of torchvision for images of " +
         network.image.text() + ", with " + network.weights.what;
}

}  // namespace fleet
