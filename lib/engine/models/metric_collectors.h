// Collectors of the metrics that train.metrics names. Exact, whatever the batches and the number of
// ranks: counts are added, and lists of numbers are sorted before they are summed. Not thread-safe.
// Collectors of several labels are in label_metrics.h.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/class_counts.h"
#include "models/class_report.h"
#include "models/named_metrics.h"

namespace fleet {

constexpr const char* kEvaluateClassesHelp =
    "write the metrics of each class to metrics.jsonl, and evaluation.json and "
    "confusion_matrix.csv next to it, for fleetrun report; keeps the scores of all samples";

// Values of the scores of classes, for ClassMetrics and LabelMetrics: those of train.metrics with
// of_curve, and the parts of a report.
class CurveMetrics {
 public:
  // exclusive: a sample has one class. reports: whether report() is wanted.
  CurveMetrics(int64_t classes, const std::vector<std::string>& metrics, bool exclusive,
               bool reports);
  // Null if nothing needs the scores of all samples.
  ScoreTable* table() { return table_.get(); }
  void finish(RankExchange& ranks);  // releases the table
  const std::map<std::string, double>& values() const { return values_; }
  const CurveReport& report() const { return report_; }

 private:
  const int64_t classes_;
  const bool exclusive_;
  std::vector<std::string> metrics_;
  std::unique_ptr<ScoreTable> table_;
  CurveReport report_;
  std::map<std::string, double> values_;
};

// For MetricInput::kClasses. Reads the output "logits", [N, num_classes], and the columns "label",
// int64 [N], and "weight", float32 [N], as ClassCounts does. The scores of classes are
// probabilities: the softmax of the logits, in float32.
class ClassMetrics : public ClassCounts {
 public:
  // with_classes: also reports each class, the confusion matrix and the worst samples.
  ClassMetrics(int64_t classes, std::vector<std::string> metrics, bool with_classes);
  void add(const Rows& rows) override;
  void finish(RankExchange& ranks) override;
  std::map<std::string, double> metrics() const override;
  Fields fields() const override;
  std::string csv(const std::vector<std::string>& names) const override;
  std::vector<int64_t> class_support() const override { return samples(); }
  Json report() const override;
  std::vector<WorstSample> worst_samples() const override { return worst_.samples(); }

 private:
  void add_scores(std::span<const float> logits, int64_t label, int64_t sample);

  const std::vector<std::string> metrics_;
  const bool with_classes_;
  bool with_scores_ = false;
  CurveMetrics curves_;
  ScoreSummer summer_;
  ScoreSums sums_;
  WorstSamples worst_;
  std::vector<float> scores_;  // one sample, if there is no table
  std::vector<double> exponentials_;
};

// For MetricInput::kNumbers. Reads the output "logits", [N, T], and the columns "targets", float32
// [N, T], and "weight", float32 [N]: skips samples of weight 0. With several targets, a metric is
// the mean over them.
class NumberMetrics : public EvaluationCollector {
 public:
  NumberMetrics(int64_t targets, std::vector<std::string> metrics);
  std::vector<std::string> outputs() const override { return {"logits"}; }
  void add(const Rows& rows) override;
  void finish(RankExchange& ranks) override;
  std::map<std::string, double> metrics() const override { return values_; }

 private:
  const int64_t targets_;
  const std::vector<std::string> metrics_;
  std::vector<double> rows_;  // per sample: the targets, then the predictions
  std::map<std::string, double> values_;
};

// The collector of a task with the key "metrics"; null if the job names none (and wants no report
// of each class: train.evaluate_classes).
std::unique_ptr<EvaluationCollector> class_metrics(const TaskContext& context,
                                                   bool with_classes = false);
std::unique_ptr<EvaluationCollector> number_metrics(const TaskContext& context);

}  // namespace fleet
