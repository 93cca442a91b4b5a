#include "hf/export.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/file_status.h"
#include "base/log.h"
#include "base/text.h"
#include "models/task.h"
#include "models/text/language_models.h"
#include "train/initial_weights.h"
#include "train/job_task.h"
#include "train/trained_weights.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;

constexpr char kConfigFile[] = "config.json", kWeightsFile[] = "model.safetensors",
               kWeightsIndex[] = "model.safetensors.index.json";

void check_folder(const std::string& folder, const std::string& source) {
  std::error_code error;
  if (!source.empty() && fs::equivalent(folder, source, error)) {
    throw Error(ErrorCode::kUsage, "is the folder that the model comes from", folder,
                "write to another folder");
  }
  if (!path_exists(folder)) return;
  if (!is_folder(folder)) throw Error(ErrorCode::kUsage, "is not a folder", folder, "use a folder");
  if (fs::is_empty(folder, error) || path_exists(folder + "/" + kConfigFile)) return;
  throw Error(ErrorCode::kUsage, "has other files, but no config.json", folder,
              "use a new folder, or one of an earlier export");
}

// One type for all: float32 if they differ.
std::string unify_types(TensorFile* file) {
  std::set<DType> types;
  for (const auto& [name, tensor] : file->tensors) types.insert(tensor.dtype);
  if (types.size() == 1) return name_of(*types.begin());
  for (auto& [name, tensor] : file->tensors) {
    tensor.data = tensor.values();
    tensor.load = nullptr;
    tensor = converted(tensor, DType::kFloat32);
  }
  return name_of(DType::kFloat32);
}

size_t bytes_of(const HostTensor& tensor) {
  return static_cast<size_t>(tensor.shape.elements()) * size_of(tensor.dtype);
}

// The tensors in files of at most shard_bytes each, unless one tensor is larger.
std::vector<TensorFile> shards_of(const TensorFile& file, int64_t shard_bytes) {
  std::vector<TensorFile> shards;
  size_t filled = 0;
  for (const auto& [name, tensor] : file.tensors) {
    const size_t bytes = bytes_of(tensor);
    if (shards.empty() || filled + bytes > static_cast<size_t>(shard_bytes)) {
      if (shards.empty() || filled > 0)
        shards.push_back({.tensors = {}, .metadata = file.metadata});
      filled = 0;
    }
    shards.back().tensors.emplace(name, tensor);
    filled += bytes;
  }
  return shards;
}

std::string shard_name(size_t index, size_t count) {
  char name[64];
  std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", index + 1, count);
  return name;
}

// Returns the names of the files.
std::set<std::string> write_weights(const TensorFile& file, const std::string& folder,
                                    int64_t shard_bytes) {
  const std::vector<TensorFile> shards = shards_of(file, shard_bytes);
  if (shards.size() == 1) {
    write_safetensors(folder + "/" + kWeightsFile, file);
    return {kWeightsFile};
  }
  std::set<std::string> names = {kWeightsIndex};
  Json map = Json::object();
  int64_t parameters = 0;
  size_t bytes = 0;
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name = shard_name(i, shards.size());
    write_safetensors(folder + "/" + name, shards[i]);
    names.insert(name);
    for (const auto& [tensor, value] : shards[i].tensors) {
      map[tensor] = name;
      parameters += value.shape.elements();
      bytes += bytes_of(value);
    }
  }
  const Json index = {{"metadata", {{"total_parameters", parameters}, {"total_size", bytes}}},
                      {"weight_map", map}};
  write_file_atomically(folder + "/" + kWeightsIndex, index.dump(2) + "\n");
  return names;
}

// Removes weights of an earlier export: transformers would read them instead of the new ones.
void remove_stale_weights(const std::string& folder, const std::set<std::string>& own) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const bool weights = name == kWeightsFile || name == kWeightsIndex ||
                         (name.starts_with("model-") && name.ends_with(".safetensors")) ||
                         name.starts_with("pytorch_model");
    if (weights && !own.contains(name)) fs::remove(entry.path(), error);
  }
}

// The tokenizer's files of the model's folder, or the tokenizer of the data.
void copy_tokenizer(const Job& job, const std::string& source, const std::string& folder) {
  std::string from = source;
  if (from.empty() && job.data.has("tokenizer")) from = job.data.text("tokenizer");
  if (from.empty() || !path_exists(from)) return;
  const auto copy = [&](const std::string& path, const std::string& name) {
    if (path_exists(path)) write_file_atomically(folder + "/" + name, read_file(path));
  };
  if (!is_folder(from)) {
    if (from.ends_with(".json")) copy(from, "tokenizer.json");
    from = fs::path(from).parent_path().string();
    if (from.empty()) from = ".";
  } else {
    copy(from + "/tokenizer.json", "tokenizer.json");
  }
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
                           "vocab.json", "merges.txt", "tokenizer.model", "chat_template.jinja"}) {
    copy(from + "/" + name, name);
  }
}

void write_generation_config(const Json& config, const std::string& source,
                             const std::string& folder) {
  const std::string name = "generation_config.json";
  if (!source.empty() && path_exists(source + "/" + name)) {
    write_file_atomically(folder + "/" + name, read_file(source + "/" + name));
    return;
  }
  Json generation = Json::object();
  generation["_from_model_config"] = true;
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
    if (const Json* id = config.find(key); id && !id->is_null()) generation[key] = *id;
  }
  write_file_atomically(folder + "/" + name, generation.dump(2) + "\n");
}

// The loss of transformers' class.
void set_problem(const std::string& task, Json* config) {
  const TaskDef& def = task_registry().get(task);
  if (def.predicts_numbers) (*config)["problem_type"] = "regression";
  if (def.probabilities) (*config)["problem_type"] = "single_label_classification";
}

}  // namespace

std::string export_hugging_face(const Job& job, const std::string& folder, int64_t shard_bytes) {
  const std::optional<LanguageSource> source = language_source(job.model_name, job.model);
  if (!source) {
    throw Error(ErrorCode::kUsage, "'" + job.model_name + "' is not a language model", "model.name",
                "export it as ONNX: --onnx FILE");
  }
  check_folder(folder, source->folder);
  const LanguageModel model = language_model_of(*source);
  TrainedWeights weights = trained_weights(job, "checkpoint.resume");
  for (const std::string& line : weights.lines) spdlog::info("{}: {}", weights.paths[0], line);
  const std::set<std::string> outputs = outputs_of(job);
  TensorFile file = hugging_face_tensors(model, weights.file, weights.paths[0], outputs);
  const std::string dtype = unify_types(&file);
  Json config =
      hugging_face_config(model, source->config, dtype, outputs, class_names(job, weights));
  if (outputs.contains("logits")) set_problem(job.task, &config);
  make_directories(folder);
  const std::set<std::string> names = write_weights(file, folder, shard_bytes);
  remove_stale_weights(folder, names);
  copy_tokenizer(job, source->folder, folder);
  write_generation_config(config, source->folder, folder);
  write_file_atomically(folder + "/" + kConfigFile, config.dump(2) + "\n");
  return "wrote " + folder + ": " + model.family + " in " + dtype + ", " +
         std::to_string(names.size()) + (names.size() == 1 ? " file" : " files") +
         " of weights, with " + weights.what;
}

ConfigTree job_of_checkpoint(const std::string& checkpoint) {
  const fs::path run = fs::path(checkpoint) / ".." / "..";
  const std::string path = (run / "config.txt").lexically_normal().string();
  if (!path_exists(checkpoint + "/" + kWeightsFile) || !path_exists(path)) {
    throw Error(ErrorCode::kUsage, "is not a checkpoint of a run, or its run has no config.txt",
                checkpoint, "give a job file, or checkpoints/step_N of a run");
  }
  ConfigTree tree;
  const std::string text = read_file(path);
  for (const std::string_view line : lines_of(text)) {  // "path = value  (origin)"
    const size_t equals = line.find(" = "), origin = line.rfind("  (");
    if (equals == std::string_view::npos || origin == std::string_view::npos) continue;
    if (line.substr(origin) == "  (default)") continue;
    const std::string_view value = trim(line.substr(equals + 3, origin - equals - 3));
    const auto json = Json::try_parse(value);
    tree.set(std::string(trim(line.substr(0, equals))),
             json && json->is_string() ? json->get<std::string>() : value, path);
  }
  tree.set("predict.checkpoint", checkpoint, "--set");
  return tree;
}

}  // namespace fleet
