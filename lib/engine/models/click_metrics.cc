#include "models/click_metrics.h"

namespace fleet {

void ClickMetrics::add(const Rows& rows) {
  const std::span<const float> logits = rows.output("logits");
  const auto labels = rows.column_as<float>("label"), weights = rows.column_as<float>("weight");
  for (int64_t n = 0; n < rows.size; ++n) {
    if (weights[n] == 0) continue;
    add_click(logits[n], labels[n], &counts_);
    if (few_.size() < 2 * counts_.positives.size()) {
      few_.insert(few_.end(), {static_cast<double>(logits[n]), static_cast<double>(labels[n])});
    }
  }
}

void ClickMetrics::finish(RankExchange& ranks) {
  std::vector<double> sums = {counts_.samples, counts_.clicks, counts_.predicted, counts_.log_loss};
  ranks.sum(sums);
  counts_.samples = sums[0];
  counts_.clicks = sums[1];
  counts_.predicted = sums[2];
  counts_.log_loss = sums[3];
  if (counts_.samples <= static_cast<double>(counts_.positives.size())) {
    sum_exactly(ranks);
  } else {
    sum_histograms(ranks);
  }
}

void ClickMetrics::sum_exactly(RankExchange& ranks) {
  std::vector<ScoredClick> samples;
  for (const std::vector<double>& rank : ranks.gather(few_)) {
    for (size_t i = 0; i + 1 < rank.size(); i += 2) samples.push_back({rank[i], rank[i + 1] > 0.5});
  }
  count_exactly(std::move(samples), &counts_);
}

void ClickMetrics::sum_histograms(RankExchange& ranks) {
  ranks.sum(counts_.positives);
  ranks.sum(counts_.negatives);
}

std::map<std::string, double> ClickMetrics::metrics() const {
  std::map<std::string, double> values;
  for (const std::string& name : metrics_) {
    values[name] = named_metric_registry().get(name).of_clicks(counts_);
  }
  return values;
}

std::unique_ptr<EvaluationCollector> click_metrics(const TaskContext& context) {
  std::vector<std::string> metrics = registered_metrics(context);
  if (metrics.empty()) return nullptr;
  return std::make_unique<ClickMetrics>(std::move(metrics), context.settings().integer("auc_bins"));
}

}  // namespace fleet
