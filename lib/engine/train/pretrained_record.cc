#include "train/pretrained_record.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/file_status.h"
#include "train/model_card.h"
#include "train/torch_file.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;

constexpr char kConfigName[] = "config.json", kPretrainedField[] = "pretrained_cfg";

// A field of this type, below pretrained_cfg or, in older files, at top level; null without one.
template <typename Is>
const Json* field(const Json& config, std::string_view key, const Is& is) {
  const Json* nested = config.find(kPretrainedField);
  for (const Json* from : {nested, &config}) {
    const Json* found = from && from->is_object() ? from->find(key) : nullptr;
    if (found && is(*found)) return found;
  }
  return nullptr;
}

std::string text_in(const Json& config, std::string_view key) {
  const Json* found = field(config, key, [](const Json& json) { return json.is_string(); });
  return found ? found->get<std::string>() : "";
}

double number_in(const Json& config, std::string_view key, double otherwise) {
  const Json* found = field(config, key, [](const Json& json) { return json.is_number(); });
  return found ? found->get<double>() : otherwise;
}

template <typename T, typename Is>
std::vector<T> list_in(const Json& config, std::string_view key, const Is& is) {
  const Json* found = field(config, key, [&](const Json& json) {
    return json.is_array() && !json.empty() &&
           std::all_of(json.begin(), json.end(), [&](const Json& one) { return is(one); });
  });
  return found ? found->get<std::vector<T>>() : std::vector<T>();
}

std::vector<double> numbers_in(const Json& config, std::string_view key) {
  auto numbers = list_in<double>(config, key, [](const Json& one) { return one.is_number(); });
  if (numbers.size() != 1 && numbers.size() > 4) numbers.clear();
  return numbers;
}

std::vector<std::string> texts_in(const Json& config, std::string_view key) {
  return list_in<std::string>(config, key, [](const Json& one) { return one.is_string(); });
}

// A name, or a list of names.
std::vector<std::string> names_in(const Json& config, std::string_view key) {
  const std::string one = text_in(config, key);
  return one.empty() ? texts_in(config, key) : std::vector<std::string>{one};
}

// The number at top level wins in timm.
int64_t classes_in(const Json& config) {
  constexpr double kMost = 1e9;
  const Json* own = config.find("num_classes");
  const double count =
      own && own->is_number() ? own->get<double>() : number_in(config, "num_classes", -1);
  return count >= 0 && count <= kMost ? static_cast<int64_t>(count) : -1;
}

std::vector<int64_t> image_in(const Json& config) {
  auto size = list_in<int64_t>(config, "input_size",
                               [](const Json& one) { return one.is_number_integer(); });
  const bool fits = size.size() == 3 && std::all_of(size.begin(), size.end(), [](int64_t side) {
                      return side > 0 && side <= 65536;
                    });
  return fits ? size : std::vector<int64_t>();
}

std::string plain_mode(const std::string& mode) {
  return mode == "center" || mode == "squash" || mode == "border" ? mode : "";
}

std::string plain_filter(const std::string& name) {
  for (const char* known : {"float_bilinear", "box", "bilinear", "hamming", "bicubic", "lanczos"}) {
    if (name == known) return name;
  }
  return name == "random" ? "bicubic" : "";
}

// 16 of 16 and of [16, 16]; "" of others. kUsage if it has several values.
std::string side_in(const Json& value, const std::string& argument, const std::string& origin) {
  const bool is_list = value.is_array() && !value.empty();
  const Json& first = is_list ? *value.begin() : value;
  if (!first.is_number_integer()) return "";
  if (is_list &&
      !std::all_of(value.begin(), value.end(), [&](const Json& side) { return side == first; })) {
    throw Error(ErrorCode::kUsage,
                "model_args." + argument + " is " + value.dump() +
                    ", and a network here has as many rows as columns",
                origin, "use other weights");
  }
  return first.dump();
}

// What timm's function of the network was told, as far as a network here has it as a key.
std::map<std::string, std::string> keys_of_arguments(const Json& config,
                                                     const std::string& origin) {
  constexpr std::pair<const char*, const char*> kKeys[] = {{"patch_size", "patch"},
                                                           {"window_size", "window"}};
  std::map<std::string, std::string> keys;
  const Json* arguments = config.find("model_args");
  if (!arguments || !arguments->is_object()) return keys;
  for (const auto& [argument, key] : kKeys) {
    const Json* found = arguments->find(argument);
    const std::string side = found ? side_in(*found, argument, origin) : "";
    if (!side.empty()) keys[key] = side;
  }
  const Json* windows = arguments->find("pretrained_window_sizes");
  const std::string text = windows && windows->is_array() ? windows->dump_lossy() : "";
  if (!text.empty() && text != "[0,0,0,0]") keys["trained_windows"] = text;  // 0: timm's "none"
  return keys;
}

// The eight digits after the last dash of "resnet50-0676ba61.pth".
std::string hash_in_name(const std::string& path) {
  constexpr size_t kDigits = 8;
  const std::string stem = fs::path(path).stem().string();
  const size_t dash = stem.rfind('-');
  if (dash == std::string::npos) return "";
  const std::string hash = stem.substr(dash + 1);
  const bool hex =
      hash.size() == kDigits && hash.find_first_not_of("0123456789abcdef") == std::string::npos;
  return hex ? hash : "";
}

// "dinov2_vits14_reg4_pretrain.pth": of the authors of DINOv2, with the images of their evaluation.
std::optional<PretrainedRecord> dinov2_record(const std::string& path) {
  const std::string file = fs::path(path).filename().string();
  for (const auto& [size, network] : {std::pair("vits14", "vit_small"), {"vitb14", "vit_base"}}) {
    for (const std::string registers : {"", "_reg4"}) {
      if (!file.starts_with("dinov2_" + std::string(size) + registers + "_pretrain")) continue;
      return PretrainedRecord{
          .library = WeightsLibrary::kMeta,
          .origin = file + ", its name",
          .architecture = std::string(network) + "_patch14" + registers + "_dinov2",
          .classes = 0,
          .class_names = {},
          .image = {3, 224, 224},
          .mean = {0.485, 0.456, 0.406},
          .std = {0.229, 0.224, 0.225},
          .interpolation = "bicubic",
          .crop_pct = 0,
          .resize = 256,
          .crop_mode = "center",
          .classifier = {}};
    }
  }
  return std::nullopt;
}

std::optional<Json> config_beside(const std::string& path) {
  const fs::path folder = is_folder(path) ? fs::path(path) : fs::path(path).parent_path();
  const std::string file = (folder / kConfigName).string();
  if (!path_exists(file)) return std::nullopt;
  std::optional<Json> config = Json::try_parse(read_file(file));
  if (!config && is_folder(path)) {
    throw Error(ErrorCode::kUsage, "is not JSON, so nothing says how images were prepared", file,
                "download it again");
  }
  return config;
}

// A file with one of the names that a folder's weights have belongs to the folder's config.json.
bool has_folders_name(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  return name.starts_with("model.safetensors") || name.starts_with("pytorch_model.") ||
         name == "model.pth";
}

// The first file of a folder with this ending, by name.
std::string first_with(const std::string& folder, const std::string& ending) {
  std::string first;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(ending) && (first.empty() || name < first)) first = name;
  }
  return first.empty() ? "" : folder + "/" + first;
}

}  // namespace

std::optional<PretrainedRecord> record_in(const Json& config, const std::string& origin) {
  if (!config.is_object()) return std::nullopt;
  PretrainedRecord record;
  record.architecture = text_in(config, "architecture");
  if (record.architecture.empty()) return std::nullopt;
  record.library = config.contains("fleetrun") ? WeightsLibrary::kOwn : WeightsLibrary::kTimm;
  record.classes = classes_in(config);
  record.class_names = texts_in(config, "label_names");
  if (record.class_names.empty()) record.class_names = texts_in(config, "labels");
  record.image = image_in(config);
  record.mean = numbers_in(config, "mean");
  record.std = numbers_in(config, "std");
  record.interpolation = plain_filter(text_in(config, "interpolation"));
  record.crop_pct = number_in(config, "crop_pct", 0);
  if (!(record.crop_pct > 0.1 && record.crop_pct <= 1)) record.crop_pct = 0;
  record.resize = static_cast<int64_t>(std::clamp(number_in(config, "resize", 0), 0.0, 65536.0));
  record.crop_mode = plain_mode(text_in(config, "crop_mode"));
  record.classifier = names_in(config, "classifier");
  if (record.library == WeightsLibrary::kTimm) {
    record.model_keys = keys_of_arguments(config, origin);
  }
  const Json* keys = record.library == WeightsLibrary::kOwn ? config.find("model_keys") : nullptr;
  if (keys && keys->is_object()) {
    for (const auto& [key, value] : keys->items()) record.model_keys[key] = value.dump_lossy();
  }
  return record;
}

Json json_of(const PretrainedRecord& record) {
  Json json = Json::object();
  json["architecture"] = record.architecture;
  if (record.library == WeightsLibrary::kOwn) json["fleetrun"] = true;
  if (record.classes >= 0) json["num_classes"] = record.classes;
  if (!record.image.empty()) json["input_size"] = record.image;
  if (!record.mean.empty()) json["mean"] = record.mean;
  if (!record.std.empty()) json["std"] = record.std;
  if (!record.interpolation.empty()) json["interpolation"] = record.interpolation;
  if (record.crop_pct > 0) json["crop_pct"] = record.crop_pct;
  if (record.resize > 0) json["resize"] = record.resize;
  if (!record.crop_mode.empty()) json["crop_mode"] = record.crop_mode;
  if (!record.model_keys.empty()) {
    Json keys = Json::object();
    for (const auto& [key, value] : record.model_keys) keys[key] = Json::parse(value);
    json["model_keys"] = keys;
  }
  if (record.classifier.size() == 1) json["classifier"] = record.classifier[0];
  if (record.classifier.size() > 1) json["classifier"] = record.classifier;
  return json;
}

bool is_transformers_folder(const std::string& path) {
  const std::optional<Json> config = config_beside(path);
  return config && config->contains("model_type") && !config->contains("architecture");
}

std::string weights_file(const std::string& path) {
  if (!is_folder(path)) return path;
  for (const char* name : {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
                           "pytorch_model.bin.index.json", "pytorch_model.pth", "model.pth"}) {
    const std::string file = path + (path.ends_with('/') ? "" : "/") + name;
    if (path_exists(file)) return file;
  }
  for (const char* ending : {".safetensors", ".pth", ".pth.tar", ".bin"}) {
    const std::string file = first_with(path, ending);
    if (!file.empty()) return file;
  }
  throw Error(ErrorCode::kUsage,
              "the folder has no weights (model.safetensors, pytorch_model.bin, *.pth, *.pth.tar)",
              path, "name a file of weights, or a folder with one");
}

TensorFile with_averages(const std::string& path, bool average,
                         TensorFile (*read)(const std::string& file, bool average)) {
  const std::string file = weights_file(path), beside = path + "/ema.safetensors";
  if (!average || !is_folder(path) || !path_exists(beside)) return read(file, average);
  TensorFile whole = read(file, false);
  for (auto& [name, tensor] : read(beside, false).tensors) whole.tensors[name] = std::move(tensor);
  return whole;
}

std::optional<PretrainedRecord> find_record(const std::string& path,
                                            const std::map<std::string, std::string>* metadata) {
  const std::string file = weights_file(path);
  if (is_folder(path) || has_folders_name(file)) {
    const std::optional<Json> config = config_beside(path);
    const std::string origin = (fs::path(file).parent_path() / kConfigName).string();
    auto record = config ? record_in(*config, origin) : std::nullopt;
    if (record) {
      record->origin = origin;
      return record;
    }
  }
  if (const std::string hash = hash_in_name(file); !hash.empty()) {
    auto record = torchvision_record(hash);
    if (record) {
      record->origin = fs::path(file).filename().string() + ", the hash in its name";
      return record;
    }
  }
  if (auto record = dinov2_record(file)) return record;
  std::map<std::string, std::string> read;
  if (!metadata) {
    read = open_outline(file).metadata;
    metadata = &read;
  }
  const auto found = metadata->find(kPretrainedField);
  if (found == metadata->end()) return std::nullopt;
  const std::optional<Json> json = Json::try_parse(found->second);
  auto record = json ? record_in(*json, file) : std::nullopt;
  if (!record) return std::nullopt;
  if (record->class_names.empty()) record->class_names = read_card(*metadata).classes;
  record->origin = file;
  return record;
}

}  // namespace fleet
