// The collector of metrics of samples with several classes, for MetricInput::kLabels.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/metric_collectors.h"

namespace fleet {

// Reads the output "logits", [N, classes], and the columns "targets", float32 [N, classes] (above
// 0.5: the sample has the class), and "weight": skips samples of weight 0. A class is predicted if
// its logit is 0 or more. The scores of classes are the logits. Not thread-safe.
class LabelMetrics : public EvaluationCollector {
 public:
  // with_classes: also reports each class and the worst samples.
  LabelMetrics(int64_t classes, std::vector<std::string> metrics, bool with_classes);
  std::vector<std::string> outputs() const override { return {"logits"}; }
  void add(const Rows& rows) override;
  void finish(RankExchange& ranks) override;
  std::map<std::string, double> metrics() const override;
  // "class_ap", one value per class; NaN for a class without a positive sample. With with_classes
  // more of them.
  Fields fields() const override;
  std::vector<int64_t> class_support() const override;
  Json report() const override;
  std::vector<WorstSample> worst_samples() const override { return worst_.samples(); }

 private:
  void add_sample(std::span<const float> logits, std::span<const float> targets, int64_t sample);

  const int64_t classes_;
  const std::vector<std::string> metrics_;
  const bool with_classes_;
  LabelCounts counts_;
  CurveMetrics curves_;
  WorstSamples worst_;
};

// train.metrics, and `always`, those that the task has in any case.
std::unique_ptr<EvaluationCollector> label_metrics(const TaskContext& context,
                                                   const std::vector<std::string>& always);

}  // namespace fleet
