// The part of a training Program that depends on model and task: forward, loss, metrics and
// evaluation. Backward, strategy and optimizer are appended after it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "models/metrics.h"
#include "models/named_vars.h"
#include "tensor/column.h"

namespace fleet {

// Converts bytes to the network's input: see normalize_image. One value per channel each.
struct Normalization {
  std::vector<double> mean, deviation;
};

class EvaluationCollector;  // models/task.h

struct TrainingOptions {
  std::string model;                          // a name in model_registry()
  Settings model_settings;                    // checked against the model's schema
  std::string task = "image_classification";  // a name in task_registry()
  Settings task_settings = default_task_settings("image_classification");  // by the task's schema
  int64_t batch = 1;  // samples per step on this rank
  // What the data give, of one sample each (image_columns() for images and labels). Those that
  // model and task name become feeds. "image" is fed as normalised floats unless `bytes` is set.
  std::vector<Column> columns;
  std::optional<Normalization> bytes = {};  // images are fed as bytes: "pixels" and "flip"
  bool class_weights = false;               // "class_weights" are fed: the loss weighs classes
  int64_t micro_batches = 1;                // parts of a step's batch, each of `batch` samples
  bool mixed_labels = false;                // a training sample has two labels
  // The model's outputs that are read besides those of the task, as for embeddings.
  std::vector<std::string> more_outputs = {};

  static Settings default_task_settings(const std::string& task);
};

// Columns "image" (float32, of this shape: channels, height, width) and "label" (int64).
std::vector<Column> image_columns(const Shape& image);

// A number of this rank's batch, from the columns that it feeds.
using BatchNumber = std::function<double(
    const std::function<std::span<const std::byte>(const std::string&)>& column)>;

// A variable that is fed before each step.
struct TrainingFeed {
  std::string name;  // a column: "image", "label", "input_ids"...
  VarId var = kNoVar;
  bool training_only = false;  // evaluations do not use it
  bool per_sample = true;      // its first dimension is the batch
  // If set, the feed has no column. Its value is the mean of this number over the ranks of the
  // step; 1 if the mean is 0.
  BatchNumber mean_of = nullptr;
};

// Sums that a section computes: a float32 variable whose elements are `parts` of the table's sums.
struct TrainingSum {
  std::string name;  // "losses"
  VarId var = kNoVar;
  std::vector<std::string> parts;
};

struct Training {
  SectionId forward = -1;   // runs in every training step
  SectionId fetch = -1;     // runs in training steps whose metrics are fetched
  SectionId evaluate = -1;  // the network as an evaluation computes it, and metrics
  // In the order of the Program's variables. "learning_rate" (float32 [1], for the optimizer) and
  // "sample_key" (int64 [N]: key for the dropout of a sample) always exist.
  std::vector<TrainingFeed> feeds;
  VarId feed(std::string_view name) const;  // kNoVar: none
  // loss: float32 [1]. Its denominator is a number that all ranks know before the step, so that the
  // mean over ranks and merged steps is the loss of one large batch.
  VarId loss = kNoVar;
  std::vector<Block> blocks;   // the forward section's
  std::vector<Block> devices;  // Network::devices()
  // The model's outputs in the forward section, and in evaluation.
  NamedVars outputs, evaluate_outputs;
  VarId output(const std::string& name) const { return find_var(outputs, name); }
  VarId evaluate_output(const std::string& name) const { return find_var(evaluate_outputs, name); }
  std::shared_ptr<const MetricTable> metrics;
  std::vector<TrainingSum> training_sums, evaluation_sums;
  // Collects besides sums in an evaluation. Each call returns another collector; null if they
  // collect nothing. Never empty.
  std::function<std::unique_ptr<EvaluationCollector>()> make_collector;
  std::vector<VarId> collected;  // the outputs that collectors read, in evaluation
  VarId training_sum(std::string_view name) const;  // kNoVar: none
  VarId evaluation_sum(std::string_view name) const;
};

// kUsage, naming the tasks that fit, if the model lacks what the task needs of it, or an output of
// options.more_outputs.
void check_task_of_model(const TrainingOptions& options);

// Appends sections forward, fetch and evaluate. kUsage for an unknown model or task, for data that
// lack a column, for a model without an output that the task needs, or an unsuitable image.
Training build_training(Program& program, const TrainingOptions& options);

// The model's default image size, overridden by the given dimensions: 0 keeps the default.
Shape image_shape(const std::string& model, int64_t channels, int64_t height, int64_t width);

}  // namespace fleet
