#include "train/trained_weights.h"

#include <filesystem>

#include "base/error.h"
#include "base/file_status.h"
#include "base/log.h"
#include "base/text.h"
#include "data/pipeline.h"
#include "models/model.h"
#include "models/text/language_models.h"
#include "models/weight_layout.h"
#include "optim/ema.h"
#include "train/averaged_weights.h"
#include "train/foreign_weights.h"
#include "train/initial_weights.h"
#include "train/job_task.h"
#include "train/language_weights.h"
#include "train/run_folder.h"
#include "train/saved_batches.h"

namespace fleet {
namespace {

constexpr char kOverride[] = "--set";  // begins the origin of a setting of the command line

// A setting that names weights.
struct Named {
  std::string key, path;
  bool on_command_line = false;
};

bool names_weights(const std::string& value) {
  return !value.empty() && value != "auto" && value != "no";
}

std::optional<Named> named_weights(const Job& job) {
  const Settings& settings = job.settings;
  for (const char* key : {"predict.checkpoint", "checkpoint.weights", "checkpoint.resume"}) {
    const bool given = settings.origin(key).starts_with(kOverride);
    if (given && names_weights(settings.text(key))) return Named{key, settings.text(key), true};
  }
  const std::string& predicting = settings.text("predict.checkpoint");
  const bool predicts = !settings.texts("predict.input").empty();
  if (predicts && names_weights(predicting)) return Named{"predict.checkpoint", predicting};
  const std::string& resume = settings.text("checkpoint.resume");
  if (names_weights(resume)) return Named{"checkpoint.resume", resume};
  return std::nullopt;
}

// Patches and windows that the training had not: their weights are resized, as lines say.
std::string other_sizes(const Job& job, const TrainedWeights& weights) {
  if (!weights.record || weights.record->library != WeightsLibrary::kOwn) return "";
  std::string warning;
  for (const ConfigKey& key : model_registry().get(job.model_name).schema.keys()) {
    if ((key.path != "patch" && key.path != "window") || !job.model.has(key.path)) continue;
    const auto found = weights.record->model_keys.find(key.path);
    const std::string trained = found != weights.record->model_keys.end() ? found->second
                                : key.initial                             ? key.initial->text()
                                                                          : "",
                      own = job.model.json(key.path);
    if (trained.empty() || trained == own) continue;
    warning += (warning.empty() ? "" : "; ") + ("model." + key.path) + " was " + trained +
               " in the training of " + weights.source + " and is " + own;
  }
  return warning.empty() ? warning
                         : warning + ": the weights are resized, and have not been trained for it";
}

TrainedWeights weights_in(const Job& job, const std::string& path) {
  HeadWeights heads;
  TrainedWeights weights{.source = path,
                         .paths = {path},
                         .what = "the weights of " + path,
                         .file = read_job_weights(job, path, &heads),
                         .card = {},
                         .position = {}};
  weights.lines = std::move(heads.lines);
  weights.card = read_card(weights.file.metadata);
  if (find_weight_layout(job.model_name)) {
    weights.record = find_record(path, &weights.file.metadata);
    weights.warning = other_sizes(job, weights);
  }
  return weights;
}

// The optimizer's states tell whether a checkpoint without the file of the averages once had it.
bool had_averages(const std::string& folder) {
  const std::string states = folder + "/optimizer.safetensors";
  return path_exists(states) && open_safetensors(states).tensors.contains(kEmaUpdates);
}

// Refuses weights of another network; sets the warning about other differences.
void check_position(const Job& job, TrainedWeights* weights) {
  if (!weights->position) return;
  const TrainingPosition& saved = *weights->position;
  if (saved.model != job.model_name) {
    throw Error(
        ErrorCode::kUsage,
        "is a checkpoint of the model '" + saved.model + "', the job's is '" + job.model_name + "'",
        weights->source, "use a checkpoint of the same model");
  }
  const WeightSettings own = weight_settings(job);
  const std::string other = network_difference(saved.settings, own);
  if (!other.empty()) {
    throw Error(ErrorCode::kUsage, other, weights->source,
                "set the same: with another value, these weights are another network");
  }
  std::vector<std::string> differences = {input_difference(saved.settings, own)};
  const bool has_head = job.settings.text("predict.embedding") == "none";
  if (saved.task != job.task && has_head) {
    differences.push_back("was trained for the task '" + saved.task + "', this job's is '" +
                          job.task + "'");
  }
  std::erase(differences, "");
  if (differences.empty()) return;
  weights->warning +=
      (weights->warning.empty() ? "" : "; ") + weights->source + " " + join(differences, "; it ");
}

TrainedWeights weights_of_checkpoint(const Job& job, const std::string& folder) {
  const auto require = [](const std::string& path) {
    if (path_exists(path)) return;
    throw DamagedFile("the file does not exist", path, "use a complete checkpoint");
  };
  const std::string path = folder + "/model.safetensors";
  require(path);
  TrainedWeights weights = weights_in(job, path);
  weights.source = folder;
  weights.what = "the weights of " + folder;
  if (path_exists(folder + "/state.json")) weights.position = read_position(folder);
  check_position(job, &weights);
  const std::string averages = folder + "/ema.safetensors";
  if (!path_exists(averages)) {
    if (evaluates_averages(job)) {
      if (had_averages(folder)) require(averages);
      spdlog::warn("{} has no averaged weights: using the plain weights", folder);
    }
    return weights;
  }
  weights.what = "the average of the weights of " + folder;
  weights.paths.push_back(averages);
  for (auto& [name, tensor] : read_safetensors(averages).tensors) {
    weights.file.tensors[name] = std::move(tensor);
  }
  return weights;
}

std::optional<TrainedWeights> newest_below(const Job& job, const std::string& root) {
  for (int64_t below = kForever;;) {
    const auto folder = latest_checkpoint(root, below);
    if (!folder) return std::nullopt;
    try {
      if (!path_exists(*folder + "/state.json")) {
        throw DamagedFile("it has no state.json", *folder, "use a complete checkpoint");
      }
      return weights_of_checkpoint(job, *folder);
    } catch (const DamagedFile& error) {
      spdlog::warn("{}: {}: using the previous checkpoint", error.where(), error.failure());
      below = step_of_checkpoint(*folder);
    }
  }
}

// Where the job has its checkpoints, the newest run first.
std::vector<std::string> own_runs(const Job& job) {
  const RunFolderOptions run = run_folder_options(job, {});
  return run.output.empty() ? runs_of(run.name) : std::vector<std::string>{run.output};
}

// A job that continued from a named checkpoint has trained since.
void note_newer_checkpoint(const Job& job, const Named& named) {
  if (named.on_command_line || named.key != "checkpoint.resume") return;
  for (const std::string& run : own_runs(job)) {
    const auto newest = newest_complete_checkpoint(run + "/checkpoints");
    if (!newest) continue;
    std::error_code error;
    if (std::filesystem::equivalent(*newest, named.path, error)) return;
    spdlog::warn(
        "the job file names {} in checkpoint.resume: not using the job's newest checkpoint, {}; to "
        "use that one, set checkpoint.resume=auto",
        named.path, *newest);
    return;
  }
}

}  // namespace

TrainedWeights read_trained_weights(const Job& job, const std::string& source,
                                    const std::string& key) {
  if (!is_folder(source)) {
    TrainedWeights weights = weights_in(job, source);
    const std::string missing = missing_normalization(job, source, weights.file.metadata);
    if (!missing.empty()) weights.warning = missing;
    return weights;
  }
  if (path_exists(source + "/model.safetensors")) return weights_of_checkpoint(job, source);
  const std::string sharded = weights_in_folder(source);
  if (!sharded.empty()) return weights_in(job, sharded);
  if (key == "checkpoint.weights") return weights_in(job, source);
  throw Error(ErrorCode::kUsage, source + " has no model.safetensors", key,
              "give a checkpoint's folder, checkpoints/step_N of a run, or a file of weights");
}

std::optional<TrainedWeights> find_trained_weights(const Job& job) {
  if (const auto named = named_weights(job)) {
    note_newer_checkpoint(job, *named);
    return read_trained_weights(job, named->path, named->key);
  }
  const std::vector<std::string> runs = own_runs(job);
  for (const std::string& run : runs) {
    if (auto weights = newest_below(job, run + "/checkpoints")) return weights;
  }
  const std::string& given = job.checkpoint.text("weights");
  const std::string weights = given.empty() ? model_weights(job) : given;
  if (weights.empty()) return std::nullopt;
  if (!given.empty() && !runs.empty() && is_folder(runs.front())) {
    spdlog::warn("{}: using checkpoint.weights", without_checkpoint(runs));
  }
  return read_trained_weights(job, weights, "checkpoint.weights");
}

TrainedWeights trained_weights(const Job& job, const std::string& key) {
  if (auto weights = find_trained_weights(job)) return std::move(*weights);
  const std::vector<std::string> runs = own_runs(job);
  throw Error(ErrorCode::kUsage, "there is no checkpoint yet",
              runs.empty() ? key : runs.front() + "/checkpoints",
              "set " + key + " to a checkpoint's folder or a file of weights");
}

// Those in the config.json of an encoder.
static std::vector<std::string> names_in_folder(const Job& job) {
  const auto source = language_source(job.model_name, job.model);
  if (!source || source->folder.empty()) return {};
  const LanguageModel model = language_model_of(*source);
  return model.encoder ? model.encoder->class_names : std::vector<std::string>();
}

std::vector<std::string> class_names(const Job& job, const TrainedWeights& weights) {
  const std::vector<std::string> own = data::given_class_names(job.data, classes_of(job));
  check_same_classes(weights.card.classes, own, weights.paths[0],
                     "remove data.class_names, or use the names it was trained with");
  if (!own.empty()) return own;
  if (!weights.card.classes.empty()) return weights.card.classes;
  if (weights.record && std::ssize(weights.record->class_names) == classes_of(job)) {
    return weights.record->class_names;
  }
  return names_in_folder(job);
}

std::vector<std::string> load_trained_weights(const Job& job, TrainedWeights* weights,
                                              Executor& executor, bool headless) {
  WeightsOptions options{
      .skip = job.checkpoint.texts("weights_skip"), .complete = true, .headless = headless};
  if (find_weight_layout(job.model_name)) options.network = job.model_name;
  options.record = weights->record;
  std::vector<std::string> lines = weights->lines;
  for (auto& line : load_weights(std::move(weights->file), weights->paths[0], options, executor)) {
    lines.push_back(std::move(line));
  }
  for (std::string& line : lines) line = weights->paths[0] + ": " + line;
  return lines;
}

}  // namespace fleet
