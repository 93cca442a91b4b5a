// Collectors of the metrics that train.metrics names. Exact, whatever the batches and the number of
// ranks: counts are added, and lists of numbers are sorted before they are summed. Not thread-safe.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/class_counts.h"
#include "models/named_metrics.h"

namespace fleet {

// For MetricInput::kClasses. Reads the output "logits", [N, num_classes], and the columns "label",
// int64 [N], and "weight", float32 [N], as ClassCounts does.
class ClassMetrics : public ClassCounts {
 public:
  // with_classes: also reports the accuracy of each class and the confusion matrix.
  ClassMetrics(int64_t classes, std::vector<std::string> metrics, bool with_classes);
  std::map<std::string, double> metrics() const override;
  Fields fields() const override;
  std::string csv(const std::vector<std::string>& names) const override;

 private:
  const std::vector<std::string> metrics_;
  const bool with_classes_;
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
// of each class).
std::unique_ptr<EvaluationCollector> class_metrics(const TaskContext& context,
                                                   bool with_classes = false);
std::unique_ptr<EvaluationCollector> number_metrics(const TaskContext& context);

}  // namespace fleet
