#include "train/evaluated_weights.h"

#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "train/resume_checks.h"
#include "train/start_comparison.h"
#include "train/trained_weights.h"

namespace fleet {
namespace {

constexpr char kKey[] = "train.evaluate_only";
constexpr char kInStore[] = "evaluated_weights";

TrainedWeights chosen_weights(const Job& job) {
  if (auto weights = find_trained_weights(job)) return std::move(*weights);
  throw Error(ErrorCode::kUsage, "there is nothing to evaluate", kKey,
              "set checkpoint.weights to a file, or checkpoint.resume to a checkpoint's folder");
}

// The run of ".../run-001/checkpoints/step_00000120"; "" for other paths.
std::string run_of_checkpoint(const std::string& source) {
  namespace fs = std::filesystem;
  const fs::path folder = (fs::path(source) / "").lexically_normal().parent_path();
  const fs::path all = folder.parent_path();
  const bool in_run = step_of_checkpoint(folder) >= 0 && all.filename() == "checkpoints";
  return in_run ? all.parent_path().string() : "";
}

void warn_of_training_samples(const TrainedWeights& weights, const TrainingPosition& own) {
  if (!weights.position || own.validation.empty()) return;
  const std::string difference = validation_difference(*weights.position, own);
  if (difference.empty()) return;
  spdlog::warn("{} {}: it may have been trained on samples that it is evaluated on", weights.source,
               difference);
}

void warn_of_tokenizer(const TrainedWeights& weights, const TrainingPosition& own) {
  if (!weights.position) return;
  const std::string other = tokenizer_difference(weights.position->tokenizer, own.tokenizer);
  if (!other.empty()) spdlog::warn("{} {}", weights.source, other);
}

}  // namespace

EvaluatedWeights load_evaluated_weights(const Job& job, StepRunner& runner, JobRank own,
                                        Store* store) {
  const bool leads = own.rank == 0;
  std::optional<TrainedWeights> weights;
  runner.control().all_succeed("choose the weights", [&] {
    if (!leads) return 0.0;
    weights = chosen_weights(job);
    if (store) store->set(kInStore, weights->source);
    return 0.0;
  });
  runner.control().all_succeed("load the weights", [&] {
    if (!leads) weights = read_trained_weights(job, store->get(kInStore, timeout_of(job)), kKey);
    check_same_classes(weights->card.classes, runner.position().card.classes, weights->source,
                       "use the data that the weights were trained with");
    const auto lines = load_trained_weights(job, &*weights, runner.executor());
    for (const std::string& line : lines) {
      if (leads) spdlog::info("{}", line);
    }
    return 0.0;
  });
  if (leads) {
    spdlog::info("evaluating {}", weights->what);
    if (!weights->warning.empty()) spdlog::warn("{}", weights->warning);
    warn_of_training_samples(*weights, runner.position());
    warn_of_tokenizer(*weights, runner.position());
  }
  TrainingPosition& at = runner.position();
  TrainingPosition saved = weights->position.value_or(at);
  saved.card = weights->card;
  at = continued(std::move(saved), at);
  return {weights->source, run_of_checkpoint(weights->source)};
}

}  // namespace fleet
