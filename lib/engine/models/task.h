// Tasks: what a model is trained for, one per file in lib/engine/models/tasks, registered under the
// name that a job file gives ("task": "causal_lm"). A task appends losses to a model's outputs and
// declares feeds and metrics; everything else (feeding, lines, checkpoints, evaluation, prediction)
// follows from that. No other code knows a task by its name.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/error.h"
#include "base/json.h"
#include "base/registry.h"
#include "models/metrics.h"
#include "models/named_vars.h"
#include "models/training.h"

namespace fleet {

// The job, as a task sees it.
struct TaskContext {
  const TrainingOptions& options;
  const Settings& settings() const { return options.task_settings; }  // by TaskDef::schema
  const Settings& model() const { return options.model_settings; }
  int64_t batch() const { return options.batch; }
  // model.num_classes, or the classes that an encoder's config.json names; 0 without any.
  int64_t classes() const;
  // The whole batch's shape of a column. Throws MissingColumn.
  Shape shape(const std::string& column) const;
};

// kUsage: the data lack a column that the model or the task needs.
class MissingColumn : public Error {
 public:
  MissingColumn(const std::string& column, const std::string& task);
  const std::string& column() const { return column_; }

 private:
  std::string column_;
};

struct FeedDef {
  std::string name;  // a column
  DType dtype = DType::kFloat32;
  Shape shape;                 // a whole batch
  bool training_only = false;  // evaluations do not use it
  bool per_sample = true;      // its first dimension is the batch
  // Instead of a column, for a float32 [1]: see TrainingFeed::mean_of. Steps cannot be merged.
  BatchNumber mean_of = nullptr;
};

// Appends a task's operations to one network: for training, or for evaluation.
class TaskBuilder {
 public:
  TaskBuilder(Program& program, const TaskContext& context, Training* training, bool evaluates)
      : program_(program), context_(context), training_(training), evaluates_(evaluates) {}

  bool training() const { return !evaluates_; }
  Program& program() { return program_; }
  const TaskContext& context() const { return context_; }
  const Settings& settings() const { return context_.settings(); }
  VarId output(const std::string& name) const;  // the model's
  VarId feed(const std::string& name) const;    // kNoVar if it is not fed
  const Var& var(VarId id) const { return program_.var(id); }

  // Appends an operation next to the network; `name` names its first output.
  VarId emit(const std::string& type, std::vector<VarId> inputs, Attributes attributes,
             const std::string& name);
  // Like emit(), for an operation whose outputs all matter: their names.
  std::vector<VarId> emit_all(const std::string& type, std::vector<VarId> inputs,
                              Attributes attributes, const std::vector<std::string>& names);
  // The loss of training, float32 [1]. Only if training().
  void set_loss(VarId loss);
  // Appends an operation that only runs in steps whose metrics are read, and declares its first
  // output, float32 [parts], as sums of the MetricTable.
  void add_sums(const std::string& name, std::vector<std::string> parts, const std::string& type,
                std::vector<VarId> inputs, Attributes attributes = {});

 private:
  Program& program_;
  const TaskContext& context_;
  Training* training_;
  bool evaluates_;
};

// Exchange between the ranks of a job. Collective.
class RankExchange {
 public:
  virtual ~RankExchange() = default;
  virtual void sum(std::span<double> values) = 0;  // over all ranks, in place
  // The values of each rank; their number may differ.
  virtual std::vector<std::vector<double>> gather(const std::vector<double>& own) = 0;
};

// Marked pixels of a network's image, in a grid of at most kMostSide rows and columns.
struct PixelMarks {
  static constexpr int kMostSide = 96;
  int height = 0, width = 0;    // cells; 0: none
  std::vector<uint8_t> marked;  // 0 or 1, row by row
};

// A sample that was predicted badly.
struct WorstSample {
  double loss = 0;     // for pixels: the part of the labelled ones that are wrong
  int64_t sample = 0;  // index in the source
  std::vector<int64_t> expected, predicted;  // classes
  double probability = 0;                    // the first predicted class has it
  PixelMarks wrong = {};                     // where the task labels pixels
};

// Collects values that need all samples of an evaluation, besides sums.
class EvaluationCollector {
 public:
  virtual ~EvaluationCollector() = default;
  // The outputs of the model that it reads, [N, ...].
  virtual std::vector<std::string> outputs() const = 0;

  struct Rows {
    int64_t size = 0;  // samples of the batch, padding included
    // Elements of an output (of outputs()), and of a column of the data.
    std::function<std::span<const float>(const std::string&)> output;
    std::function<std::span<const std::byte>(const std::string&)> column;
    template <typename T>
    std::span<const T> column_as(const std::string& name) const {
      const std::span<const std::byte> bytes = column(name);
      return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
    }
    int64_t width = 0;                              // pixels in a row of an image; 0: no images
    std::span<const std::string> class_names = {};  // by label; empty if the data name none
    std::span<const int64_t> samples = {};          // by row: indexes in the source; may be empty
    // Texts of a row that a metric needs beyond numbers (data::Source::texts()).
    std::function<std::vector<std::string>(int64_t row, const std::string& what)> texts = {};
  };
  virtual void add(const Rows& rows) = 0;
  // Combines the ranks. Collective; called once, after the last add().
  virtual void finish(RankExchange& ranks) = 0;

  // Values of the MetricTable's collected metrics.
  virtual std::map<std::string, double> metrics() const { return {}; }
  // More fields of the line in metrics.jsonl.
  struct Fields {
    std::vector<std::pair<std::string, std::vector<int64_t>>> integers;
    std::vector<std::pair<std::string, std::vector<double>>> numbers;
  };
  virtual Fields fields() const { return {}; }
  // A table for a file of its own, as CSV; "": none. names: class names by label.
  virtual std::string csv(const std::vector<std::string>& /*names*/) const { return ""; }
  // By class: the samples that have it. Empty: not a matter of classes, or not wanted.
  virtual std::vector<int64_t> class_support() const { return {}; }
  // Classes of fewer are named; the unit is plural.
  struct Few {
    int64_t least = 10;
    const char* unit = "samples";
  };
  virtual Few few() const { return {}; }
  // For evaluation.json, from which fleetrun report makes tables and pictures; null: none.
  virtual Json report() const { return nullptr; }
  // The samples with the largest losses, for that file; the largest first.
  virtual std::vector<WorstSample> worst_samples() const { return {}; }
};

class PredictionDecoder;  // models/prediction_decoder.h

struct TaskDef {
  std::string help;                  // one line
  Schema schema;                     // its keys, below "train." in a job file
  std::vector<std::string> outputs;  // what it needs of a model
  // Null, or more outputs that it needs for these data or settings, such as those of a second loss.
  std::function<std::vector<std::string>(const TaskContext&)> more_outputs;
  // Its needs of the data besides the model's inputs; "sample_key" is always fed.
  std::function<std::vector<FeedDef>(const TaskContext&)> feeds;
  std::function<MetricTable(const TaskContext&)> metrics;
  // Called for training, then for evaluation.
  std::function<void(TaskBuilder&)> build;
  // Null, or returns null: evaluations collect nothing besides sums.
  std::function<std::unique_ptr<EvaluationCollector>(const TaskContext&)> collector;
  // For --predict: a row of "logits" is the prediction.
  bool predicts_numbers = false;
  // For --predict: the probabilities of a row of "logits". Null: the task predicts no classes.
  // With predicts_probability it is one probability, that of an event.
  bool predicts_probability = false;
  std::function<void(std::span<const float> logits, std::span<double> probabilities)> probabilities;
  // For --predict, null unless the task predicts more than classes or numbers of a sample.
  std::function<std::unique_ptr<PredictionDecoder>(const TaskContext&)> decoder;
};

Registry<TaskDef>& task_registry();

// The outputs of the model that the job reads: the task's, those of its collector of evaluations,
// and options.more_outputs.
std::set<std::string> wanted_outputs(const TaskContext& context);

// FLEET_TASK(causal_lm) { def.feeds = ...; def.build = ...; } in models/tasks/causal_lm.cc.
#define FLEET_TASK(name) \
  FLEET_REGISTER(task_##name, ::fleet::TaskDef& def, ::fleet::task_registry().define, #name)

}  // namespace fleet
