#include "train/trained_weights.h"

#include <filesystem>

#include "base/error.h"
#include "base/file_status.h"
#include "base/log.h"
#include "train/checkpoint.h"
#include "train/run_folder.h"
#include "train/torch_file.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;

TrainedWeights weights_in(const std::string& path) {
  TrainedWeights weights{{path}, "the weights of " + path, read_weights(path), {}};
  weights.card = read_card(weights.file.metadata);
  return weights;
}

TrainedWeights weights_of_checkpoint(const std::string& folder) {
  const std::string path = folder + "/model.safetensors";
  if (!path_exists(path)) throw DamagedFile("the file does not exist", path, "use another one");
  TrainedWeights weights = weights_in(path);
  weights.what = "the weights of " + folder;
  const std::string averages = folder + "/ema.safetensors";
  if (!path_exists(averages)) return weights;
  weights.what = "the average of the weights of " + folder;
  weights.paths.push_back(averages);
  for (auto& [name, tensor] : read_safetensors(averages).tensors) {
    weights.file.tensors[name] = std::move(tensor);
  }
  return weights;
}

std::optional<TrainedWeights> newest_below(const std::string& root) {
  for (int64_t below = kForever;;) {
    const auto folder = latest_checkpoint(root, below);
    if (!folder) return std::nullopt;
    try {
      return weights_of_checkpoint(*folder);
    } catch (const DamagedFile& error) {
      spdlog::warn("{}: {}: using the previous checkpoint", error.where(), error.failure());
      below = step_of_checkpoint(*folder);
    }
  }
}

}  // namespace

TrainedWeights trained_weights(const Job& job, const std::string& wanted, const std::string& key) {
  if (wanted != "auto") {
    if (!is_folder(wanted)) return weights_in(wanted);
    if (path_exists(wanted + "/model.safetensors")) return weights_of_checkpoint(wanted);
    throw Error(ErrorCode::kUsage, wanted + " has no model.safetensors", key,
                "give a checkpoint's folder, checkpoints/step_N of a run, or a file of weights");
  }
  const std::string& output = job.train.text("output");
  const std::string& name = job.train.text("name");
  const std::vector<std::string> runs = output.empty()
                                            ? runs_of(name.empty() ? job.model_name : name)
                                            : std::vector<std::string>{output};
  for (const std::string& run : runs) {
    if (auto weights = newest_below(run + "/checkpoints")) return std::move(*weights);
  }
  throw Error(ErrorCode::kUsage, "there is no checkpoint yet",
              runs.empty() ? key : runs.front() + "/checkpoints",
              "set " + key + " to a checkpoint's folder or a file of weights");
}

}  // namespace fleet
