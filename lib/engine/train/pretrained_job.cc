#include "train/pretrained_job.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/error.h"
#include "base/file_status.h"
#include "base/home_folder.h"
#include "base/number_text.h"
#include "base/text.h"
#include "data/source.h"
#include "models/model.h"
#include "models/weight_layout.h"
#include "train/job_task.h"
#include "train/model_card.h"
#include "train/network_of_weights.h"
#include "train/pretrained_record.h"
#include "train/torch_file.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;

constexpr char kWeightsKey[] = "checkpoint.weights", kModelKey[] = "model.name";
constexpr char kImageNetMean[] = "[0.485, 0.456, 0.406]", kImageNetStd[] = "[0.229, 0.224, 0.225]";

std::string list_text(const std::vector<double>& values) {
  std::vector<std::string> texts;
  for (const double value : values) texts.push_back(Json(value).dump());
  return "[" + join(texts, ", ") + "]";
}

// Folders of classes; 0 if the folder cannot be read.
int64_t class_folders(const std::string& folder) {
  std::error_code error;
  int64_t count = 0;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    std::error_code unknown;
    const std::string name = entry.path().filename().string();
    if (entry.is_directory(unknown) && !name.starts_with('.') && !name.starts_with("__")) ++count;
  }
  return count;
}

class KeySetter {
 public:
  KeySetter(ConfigTree* tree, std::string weights) : tree_(*tree), weights_(std::move(weights)) {}

  DerivedKeys derive();

 private:
  bool given(const std::string& key) const { return tree_.peek(key).has_value(); }
  bool any_given(const std::string& prefix) const { return !tree_.paths(prefix).empty(); }
  std::string value(const std::string& key, const std::string& otherwise) const {
    return tree_.peek(key).value_or(otherwise);
  }
  std::string source() const { return value("data.source", "image_list"); }

  // Sets a key that the job leaves out.
  void set(const std::string& key, const std::string& text, const std::string& origin) {
    if (given(key)) return;
    tree_.set(key, text, origin);
    derived_.lines.push_back(key + " = " + text + "  (" + origin + ")");
  }

  void find_network();
  void set_known_keys(const std::map<std::string, std::string>& keys, const std::string& origin);
  void set_model_keys();
  void set_recipe();
  void set_classes();
  void set_layout();
  void set_validation();
  void set_normalization();
  void guess_normalization();
  void guess_sizes();
  void set_sizes();
  void set_evaluation();
  void set_augmentation();
  bool resizes() const;
  std::string in_root(const std::string& name) const {
    return (fs::path(expand_home(value("data.root", "."))) / name).string();
  }

  ConfigTree& tree_;
  const std::string weights_;
  std::optional<PretrainedRecord> record_;
  bool whole_ = false;  // the job names no network
  DerivedKeys derived_;
};

// The network that the job names, or that of the weights.
void KeySetter::find_network() {
  if (!whole_) return;
  std::string network, origin;
  if (record_) {
    network = network_named(record_->architecture);
    origin = record_->origin;
    if (network.empty()) {
      throw Error(
          ErrorCode::kUsage,
          "the network '" + record_->architecture + "' (" + record_->origin + ") is not known",
          weights_, nearest_networks(record_->architecture) + "; or set model.name");
    }
  } else {
    const TensorFile outline = open_outline(weights_file(weights_));
    try {
      network = network_of_weights(outline);
    } catch (const Error& error) {
      throw Error(error.code(), error.failure(), weights_, error.next());
    }
    origin = weights_ + ", names and shapes";
    if (network.empty()) {
      throw Error(ErrorCode::kUsage, "nothing tells of which network the weights are", weights_,
                  "set model.name; known networks: fleet-worker --print_keys");
    }
  }
  set(kModelKey, network, origin);
}

void KeySetter::set_known_keys(const std::map<std::string, std::string>& keys,
                               const std::string& origin) {
  const Schema& schema = model_registry().get(value(kModelKey, "")).schema;
  for (const ConfigKey& known : schema.keys()) {
    const auto found = keys.find(known.path);
    if (found == keys.end()) continue;
    const std::string& value = found->second;
    const bool quoted = value.starts_with('"');  // a text as JSON
    set("model." + known.path, quoted ? Json::parse(value).get<std::string>() : value, origin);
  }
}

// Such as another epsilon or patch, which belong to the weights whoever names the network.
void KeySetter::set_model_keys() {
  const std::string network = value(kModelKey, "");
  const WeightLayout* layout = find_weight_layout(network);
  if (record_ && network_named(record_->architecture) == network) {
    std::map<std::string, std::string> keys = record_->model_keys;
    if (layout && layout->model_keys && record_->library == WeightsLibrary::kTimm) {
      keys.merge(layout->model_keys(network, record_->architecture));
    }
    set_known_keys(keys, record_->origin);
  }
  if (!layout || !layout->keys_of_file) return;
  TensorShapes shapes;
  for (const auto& [name, tensor] : open_outline(weights_file(weights_)).tensors) {
    shapes[name] = tensor.shape;
  }
  set_known_keys(layout->keys_of_file(network, shapes), weights_ + ", names and shapes");
}

// photos/train and photos/test or val, where they exist, else photos itself.
void KeySetter::set_layout() {
  if (!whole_ || source() != "image_folder" || !given("data.root")) return;
  if (!given("data.train.folder") && !is_folder(in_root("train")) && is_folder(in_root("")) &&
      class_folders(in_root("")) > 0) {
    set("data.train.folder", ".", "there is no folder " + in_root("train"));
  }
  if (any_given("data.test.") || given("data.validation_split") || is_folder(in_root("test"))) {
    return;
  }
  for (const char* name : {"val", "valid", "validation"}) {
    if (!is_folder(in_root(name))) continue;
    return set("data.test.folder", name, "there is no folder " + in_root("test"));
  }
}

void KeySetter::set_classes() {
  if (!whole_ || given("model.num_classes")) return;
  if (source() == "image_folder") {
    const std::string folder = in_root(value("data.train.folder", "train"));
    const int64_t count = class_folders(folder);
    if (count == 1) {
      throw Error(ErrorCode::kUsage, "it has the folder of one class, and nothing to tell it from",
                  folder, "add a folder for each other class, or set model.num_classes");
    }
    if (count > 0) {
      return set("model.num_classes", std::to_string(count), "the class folders of " + folder);
    }
  }
  if (record_ && record_->classes > 0) {
    set("model.num_classes", std::to_string(record_->classes), record_->origin);
  }
}

// A tenth, if nothing says on which photographs to evaluate.
void KeySetter::set_validation() {
  const bool pretrained = whole_ || (record_ && record_->library != WeightsLibrary::kOwn);
  if (!pretrained || given("data.validation_split") || any_given("data.test.")) return;
  const data::SourceType* type = data::sources().find(source());
  if (!type || source() == "synthetic") return;
  if (source() == "image_folder") {
    if (is_folder(in_root("test"))) return;
  } else if (!type->names_data || type->names_data(ConfigTree().validate(type->schema(false)))) {
    return;  // it has test data by default
  }
  set("data.validation_split", "0.1", "pretrained weights and no test data");
}

void KeySetter::set_normalization() {
  if (source() == "synthetic") return;
  if (!record_) return guess_normalization();
  if (!record_->mean.empty()) set("data.mean", list_text(record_->mean), record_->origin);
  if (!record_->std.empty()) set("data.std", list_text(record_->std), record_->origin);
  if (!record_->interpolation.empty()) {
    set("data.interpolation", record_->interpolation, record_->origin);
  }
  if (record_->mean.empty() || record_->std.empty()) guess_normalization();
}

// Most weights of photographs were trained with ImageNet's statistics.
void KeySetter::guess_normalization() {
  if (given("data.mean") && given("data.std")) return;
  const ModelDef* model = model_registry().find(value(kModelKey, ""));
  constexpr int64_t kSmall = 100;
  if (!model || model->image[1] <= kSmall || value("data.image.channels", "3") == "1") return;
  if (record_ && record_->library == WeightsLibrary::kOwn) return;
  const bool own =
      !record_ && !read_card(open_outline(weights_file(weights_)).metadata).image.empty();
  if (own) return;  // of an older version: the job knows what it was trained with
  std::vector<std::string> keys;
  for (const auto& [key, text] :
       {std::pair("data.mean", kImageNetMean), {"data.std", kImageNetStd}}) {
    if (given(key)) continue;
    set(key, text, "a guess");
    keys.push_back(std::string(key) + "=" + text);
  }
  derived_.warnings.push_back(
      weights_ + ": nothing says how its images were normalised, so " + join(keys, " and ") +
      (keys.size() == 1 ? " is" : " are") +
      " guessed (ImageNet's); if they are wrong, results are too: set data.mean and data.std");
}

// Whether images are resized to the network's size: the job says so, or says nothing.
bool KeySetter::resizes() const {
  if (whole_) return true;
  for (const char* key : {"data.augment.random_resized_crop", "data.augment.resize",
                          "data.augment.crop_pct", "data.eval.resize", "data.eval.crop_pct"}) {
    if (given(key)) return true;
  }
  return false;
}

// Those of the network; a crop of 7/8 is the most frequent one.
void KeySetter::guess_sizes() {
  const ModelDef* model = model_registry().find(value(kModelKey, ""));
  if (!model || given("data.image.height") || given("data.image.width")) return;
  set("data.image.height", std::to_string(model->image[1]), "a guess");
  set("data.image.width", std::to_string(model->image[2]), "a guess");
  if (given("data.eval.resize") || given("data.eval.crop_pct")) return;
  set("data.eval.crop_pct", "0.875", "a guess");
}

void KeySetter::set_sizes() {
  if (!record_ && whole_ && source() != "synthetic") return guess_sizes();
  if (!record_ || record_->image.empty() || !resizes()) return;
  const bool own = record_->library == WeightsLibrary::kOwn;
  if (own && record_->resize == 0 && record_->crop_pct == 0) return;  // nothing resized them
  if (given("data.image.height") != given("data.image.width")) return;
  set("data.image.height", std::to_string(record_->image[1]), record_->origin);
  set("data.image.width", std::to_string(record_->image[2]), record_->origin);
  if (whole_ || record_->image[0] != 3) {
    set("data.image.channels", std::to_string(record_->image[0]), record_->origin);
  }
}

void KeySetter::set_evaluation() {
  if (!record_ || !resizes() || record_->image.empty()) return;
  if (!record_->crop_mode.empty() && record_->crop_mode != "center" &&
      (given("data.eval.crop_pct") || record_->crop_pct > 0) && !given("data.eval.resize")) {
    set("data.eval.crop_mode", record_->crop_mode, record_->origin);
  }
  if (given("data.eval.resize") || given("data.eval.crop_pct")) return;
  const std::string side = std::to_string(record_->image[1]);
  const bool same = value("data.image.height", "") == side && value("data.image.width", "") == side;
  if (record_->crop_pct > 0) {
    set("data.eval.crop_pct", Json(record_->crop_pct).dump(), record_->origin);
  } else if (record_->resize > 0 && same) {
    set("data.eval.resize", std::to_string(record_->resize), record_->origin);
  } else if (record_->resize > 0) {
    const double part =
        static_cast<double>(record_->image[1]) / static_cast<double>(record_->resize);
    set("data.eval.crop_pct", format_printf("%.4g", part), record_->origin);
  }
}

void KeySetter::set_augmentation() {
  if (!whole_ || any_given("data.augment.")) return;
  if (!given("data.image.height") || source() == "synthetic") return;
  const std::string origin = "fine-tuning of photographs";
  set("data.augment.random_resized_crop", "true", origin);
  set("data.augment.flip", "true", origin);
  if (record_ && record_->library == WeightsLibrary::kTimm) {
    set("data.augment.interpolation", "random", "timm's training");
  }
}

// Networks with layer norm are trained with AdamW, the others with momentum.
void KeySetter::set_recipe() {
  if (!whole_) return;
  const std::string network = value(kModelKey, ""), origin = "fine-tuning of " + network;
  if (!given("train.epochs") && !given("train.max_steps")) set("train.epochs", "10", origin);
  if (any_given("optimizer.") || any_given("learning_rate.")) return;
  const WeightLayout* layout = find_weight_layout(network);
  const bool adamw = layout && layout->adamw;
  set("optimizer.name", adamw ? "adamw" : "momentum", origin);
  set("optimizer.weight_decay", adamw ? "0.05" : "0.0001", origin);
  set("learning_rate.name", "cosine", origin);
  set("learning_rate.base", adamw ? "0.0001" : "0.01", origin);
  set("learning_rate.warmup_epochs", "1", origin);
}

DerivedKeys KeySetter::derive() {
  const auto named = tree_.peek(kModelKey);
  whole_ = !named || named->empty();
  if (!whole_ && !find_weight_layout(*named)) return {};
  if (!whole_ && !path_exists(weights_)) return {};  // a start says so; predictions may not need it
  if (whole_ && is_transformers_folder(weights_)) {
    throw Error(ErrorCode::kUsage, "is a folder of transformers", weights_,
                "for a language model, set model.name to \"hf\" and model.folder to the folder");
  }
  record_ = find_record(weights_);
  find_network();
  set_model_keys();
  set_layout();
  set_classes();
  set_validation();
  set_normalization();
  set_sizes();
  set_evaluation();
  set_augmentation();
  set_recipe();
  return std::move(derived_);
}

// The settings that differ from the model's defaults.
std::map<std::string, std::string> model_keys_of(const Job& job) {
  std::map<std::string, std::string> keys;
  const Schema& schema = model_registry().get(job.model_name).schema;
  for (const ConfigKey& key : schema.keys()) {
    if (key.path == "num_classes" || key.path == "name" || !job.model.has(key.path)) continue;
    const std::string text = job.model.json(key.path);
    if (key.initial && key.initial->text() != text) keys[key.path] = text;
  }
  return keys;
}

}  // namespace

DerivedKeys derive_from_weights(ConfigTree* tree) {
  const auto weights = tree->peek(kWeightsKey);
  if (!weights || weights->empty()) return {};
  return KeySetter(tree, expand_home(*weights)).derive();
}

std::string own_record(const Job& job, const std::vector<int64_t>& image) {
  if (!find_weight_layout(job.model_name)) return "";
  PretrainedRecord record{.library = WeightsLibrary::kOwn,
                          .origin = {},
                          .architecture = job.model_name,
                          .classes = classes_of(job),
                          .class_names = {},
                          .image = image,
                          .mean = job.data.numbers("mean"),
                          .std = job.data.numbers("std"),
                          .interpolation = job.data.text("interpolation"),
                          .crop_pct = job.data.number("eval.crop_pct"),
                          .resize = job.data.integer("eval.resize"),
                          .crop_mode = job.data.text("eval.crop_mode"),
                          .classifier = {},
                          .model_keys = model_keys_of(job)};
  return json_of(record).dump_lossy();
}

}  // namespace fleet
