// The collector of metrics of probabilities, for MetricInput::kClicks.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/metrics_clicks.h"

namespace fleet {

// Reads the output "logits", [N, 1], and the columns "label", float32 [N, 1], and "weight", float32
// [N]: skips samples of weight 0. For up to `bins` samples of all ranks together, the AUC is exact;
// for more it comes from histograms, so that memory and messages stay small. Batches and ranks do
// not change its bits; the other sums are sums of doubles. Not thread-safe.
class ClickMetrics : public EvaluationCollector {
 public:
  ClickMetrics(std::vector<std::string> metrics, int64_t bins)
      : metrics_(std::move(metrics)), counts_(click_counts(bins)) {}

  std::vector<std::string> outputs() const override { return {"logits"}; }
  void add(const Rows& rows) override;
  void finish(RankExchange& ranks) override;
  std::map<std::string, double> metrics() const override;
  const ClickCounts& counts() const { return counts_; }

 private:
  void sum_exactly(RankExchange& ranks);
  void sum_histograms(RankExchange& ranks);

  const std::vector<std::string> metrics_;
  ClickCounts counts_;
  std::vector<double> few_;  // per sample: logit, label; the first ones, at most as many as bins
};

// Null if train.metrics names none. Reads train.auc_bins.
std::unique_ptr<EvaluationCollector> click_metrics(const TaskContext& context);

}  // namespace fleet
