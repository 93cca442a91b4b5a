// Metrics that a job names, "train.metrics": ["f1", "matthews"]: each is registered in a file
// metrics_*.cc as a pure function of the results that a task gives. A task lets its users choose
// them with metrics_key(), add_named_metrics() and a collector of models/metric_collectors.h.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "models/class_pairs.h"
#include "models/class_totals.h"
#include "models/score_curves.h"
#include "models/score_sums.h"
#include "models/task.h"

namespace fleet {

// The results that a task gives to its metrics, over all samples of an evaluation.
enum class MetricInput {
  kClasses,   // a true and a predicted class of each sample, and a score of each class
  kLabels,    // several classes of each sample, or none, and a score of each class
  kPixels,    // a true and a predicted class of each pixel
  kNumbers,   // a target and a prediction of each sample
  kEntities,  // the tagged spans of texts
  kAnswers,   // answers to questions, as texts
  kClicks,    // the logit of a probability and whether the event happened, of each sample
};
const char* name_of(MetricInput input);  // plural: "classes"

// Entities of all texts together, as seqeval counts them.
struct EntityCounts {
  double expected = 0, predicted = 0, correct = 0;
  double tags = 0, correct_tags = 0;  // by token
};

// Sums over all questions; SQuAD's script gives each one from 0 to 1.
struct AnswerSums {
  double questions = 0, exact = 0, f1 = 0;
};

// Predicted probabilities, over all samples. The histograms have the samples in bins of ascending
// logits; samples of equal logits are in one bin.
struct ClickCounts {
  double samples = 0, clicks = 0, predicted = 0, log_loss = 0;  // sums
  std::vector<double> positives = {}, negatives = {};           // samples by bin
};

// One number from all samples of an evaluation. It is set for the input, or the inputs, that the
// metric is computed from. NaN: undefined for these samples.
struct NamedMetric {
  std::string help;                                     // one line
  std::function<double(const ClassPairs&)> of_classes;  // kClasses and kPixels
  // Of samples with one class each.
  std::function<double(const ScoreSums&)> of_scores;
  // Of samples with several classes; a class is predicted if its probability is 0.5 or more.
  std::function<double(const LabelCounts&)> of_labels;
  // Of the scores of one class, for kClasses and kLabels: the metric is the mean over the classes,
  // without NaN. Of two classes that exclude each other, class 1 alone counts.
  std::function<double(const ScoreCurve&)> of_curve;
  // Of equal sizes, in any order of the samples.
  std::function<double(std::span<const double> targets, std::span<const double> predictions)>
      of_numbers;
  std::function<double(const EntityCounts&)> of_entities;
  std::function<double(const AnswerSums&)> of_answers;
  std::function<double(const ClickCounts&)> of_clicks;
  bool binary = false;        // only for two classes; class 1 is the positive one
  int64_t least_classes = 0;  // kClasses, kPixels: a model of fewer is refused
  int decimals = 5;           // in lines
  bool larger_is_better = true;

  bool takes(MetricInput input) const;
};

Registry<NamedMetric>& named_metric_registry();

// FLEET_METRIC(matthews) { def.help = ...; def.of_classes = ...; } in models/metrics_classes.cc.
#define FLEET_METRIC(name)                                 \
  FLEET_REGISTER(metric_##name, ::fleet::NamedMetric& def, \
                 ::fleet::named_metric_registry().define, #name)

// Adds the key "metrics" to a task's schema: names of metrics; `initial` if the job names none.
void metrics_key(Schema* schema, MetricInput input, std::vector<std::string> initial);

// The tasks whose evaluations give this metric without that key; upper case does not count.
std::vector<std::string> tasks_with_metric(const std::string& name);

// The metrics of the key "metrics" that are registered; the task computes the others itself.
std::vector<std::string> registered_metrics(const TaskContext& context);

// Appends the metrics of the key "metrics" to a task's table, as collected ones; those that the
// table has by name already stay as they are. The first one becomes the headline of a table without
// one. kUsage naming the metric if it is unknown, is given twice, or does not suit the task or its
// number of classes.
void add_named_metrics(const TaskContext& context, MetricInput input, MetricTable* table);

}  // namespace fleet
