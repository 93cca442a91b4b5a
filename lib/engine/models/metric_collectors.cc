#include "models/metric_collectors.h"

#include <algorithm>
#include <compare>

#include "base/error.h"

namespace fleet {

ClassMetrics::ClassMetrics(int64_t classes, std::vector<std::string> metrics, bool with_classes)
    : ClassCounts(classes), metrics_(std::move(metrics)), with_classes_(with_classes) {}

std::map<std::string, double> ClassMetrics::metrics() const {
  std::map<std::string, double> values;
  for (const std::string& name : metrics_) {
    values[name] = named_metric_registry().get(name).of_classes(pairs());
  }
  return values;
}

EvaluationCollector::Fields ClassMetrics::fields() const {
  return with_classes_ ? ClassCounts::fields() : Fields{};
}

std::string ClassMetrics::csv(const std::vector<std::string>& names) const {
  return with_classes_ ? ClassCounts::csv(names) : "";
}

NumberMetrics::NumberMetrics(int64_t targets, std::vector<std::string> metrics)
    : targets_(targets), metrics_(std::move(metrics)) {}

void NumberMetrics::add(const Rows& rows) {
  const std::span<const float> logits = rows.output("logits");
  const auto targets = rows.column_as<float>("targets"), weights = rows.column_as<float>("weight");
  for (int64_t n = 0; n < rows.size; ++n) {
    if (weights[n] == 0) continue;
    for (const auto& values : {targets, logits}) {
      const auto row = values.subspan(n * targets_, targets_);
      rows_.insert(rows_.end(), row.begin(), row.end());
    }
  }
}

void NumberMetrics::finish(RankExchange& ranks) {
  const std::vector<std::vector<double>> all = ranks.gather(rows_);
  for (int64_t t = 0; t < targets_; ++t) {
    std::vector<std::pair<double, double>> pairs;
    for (const std::vector<double>& rank : all) {
      for (size_t row = 0; row < rank.size(); row += static_cast<size_t>(2 * targets_)) {
        pairs.emplace_back(rank[row + t], rank[row + targets_ + t]);
      }
    }
    // Sums do not depend on which rank had a sample. The order is also total for NaN.
    std::ranges::sort(pairs, [](const auto& a, const auto& b) {
      const auto first = std::strong_order(a.first, b.first);
      return (first != 0 ? first : std::strong_order(a.second, b.second)) < 0;
    });
    std::vector<double> targets, predictions;
    for (const auto& [target, prediction] : pairs) {
      targets.push_back(target);
      predictions.push_back(prediction);
    }
    for (const std::string& name : metrics_) {
      const double value = named_metric_registry().get(name).of_numbers(targets, predictions);
      values_[name] += value / static_cast<double>(targets_);
    }
  }
}

std::unique_ptr<EvaluationCollector> class_metrics(const TaskContext& context, bool with_classes) {
  std::vector<std::string> metrics = context.settings().texts("metrics");
  if (metrics.empty() && !with_classes) return nullptr;
  return std::make_unique<ClassMetrics>(context.classes(), std::move(metrics), with_classes);
}

std::unique_ptr<EvaluationCollector> number_metrics(const TaskContext& context) {
  std::vector<std::string> metrics = context.settings().texts("metrics");
  if (metrics.empty()) return nullptr;
  return std::make_unique<NumberMetrics>(context.classes(), std::move(metrics));
}

}  // namespace fleet
