#include "models/metric_collectors.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <iterator>
#include <numeric>

#include "base/error.h"

namespace fleet {

static const NamedMetric& metric_named(const std::string& name) {
  return named_metric_registry().get(name);
}

CurveMetrics::CurveMetrics(int64_t classes, const std::vector<std::string>& metrics, bool exclusive,
                           bool reports)
    : classes_(classes), exclusive_(exclusive), report_(classes) {
  for (const std::string& name : metrics) {
    if (metric_named(name).of_curve) metrics_.push_back(name);
  }
  if (reports || !metrics_.empty()) table_ = std::make_unique<ScoreTable>(classes);
}

void CurveMetrics::finish(RankExchange& ranks) {
  if (!table_) return;
  std::map<std::string, double> sums, classes;
  table_->for_each_class(ranks, [&](int64_t c, const ScoreCurve& curve) {
    report_.add(c, curve);
    if (exclusive_ && classes_ == 2 && c == 0) return;
    for (const std::string& name : metrics_) {
      const double value = metric_named(name).of_curve(curve);
      if (std::isnan(value)) continue;
      sums[name] += value;
      classes[name] += 1;
    }
  });
  for (const std::string& name : metrics_) {
    values_[name] = classes[name] > 0 ? sums[name] / classes[name] : std::nan("");
  }
  table_.reset();
}

ClassMetrics::ClassMetrics(int64_t classes, std::vector<std::string> metrics, bool with_classes)
    : ClassCounts(classes),
      metrics_(std::move(metrics)),
      with_classes_(with_classes),
      with_scores_(with_classes),
      curves_(classes, metrics_, true, with_classes),
      summer_(classes),
      scores_(static_cast<size_t>(classes)) {
  for (const std::string& name : metrics_) {
    const NamedMetric& metric = metric_named(name);
    with_scores_ = with_scores_ || metric.of_scores || metric.of_curve;
  }
}

void ClassMetrics::add(const Rows& rows) {
  ClassCounts::add(rows);
  if (!with_scores_) return;
  const std::span<const float> logits = rows.output("logits");
  const auto labels = rows.column_as<int64_t>("label");
  const auto weights = rows.column_as<float>("weight");
  for (int64_t n = 0; n < rows.size; ++n) {
    if (weights[n] == 0 || labels[n] < 0 || labels[n] >= classes()) continue;
    add_scores(logits.subspan(n * classes(), classes()), labels[n],
               rows.samples.empty() ? -1 : rows.samples[n]);
  }
}

void ClassMetrics::add_scores(std::span<const float> logits, int64_t label, int64_t sample) {
  ScoreTable* table = curves_.table();
  const std::span<float> scores = table ? table->add_sample() : std::span<float>(scores_);
  const double loss = softmax_scores(logits, label, scores, &exponentials_);
  if (table) table->add_positive(label);
  const int64_t predicted = predicted_class(logits, label);
  summer_.add_place(logits, label);
  if (classes() == 2) {
    summer_.add_confidence(scores[1], label == 1);
  } else {
    summer_.add_confidence(scores[predicted], predicted == label);
  }
  if (!with_classes_ || !worst_.takes(loss)) return;
  worst_.add({.loss = loss,
              .sample = sample,
              .expected = {label},
              .predicted = {predicted},
              .probability = scores[predicted]});
}

void ClassMetrics::finish(RankExchange& ranks) {
  ClassCounts::finish(ranks);
  if (!with_scores_) return;
  sums_ = summer_.finish(ranks);
  curves_.finish(ranks);
  worst_.finish(ranks);
}

std::map<std::string, double> ClassMetrics::metrics() const {
  std::map<std::string, double> values = curves_.values();
  const ClassPairs all = pairs();
  for (const std::string& name : metrics_) {
    const NamedMetric& metric = metric_named(name);
    if (metric.of_classes) values[name] = metric.of_classes(all);
    if (metric.of_scores) values[name] = metric.of_scores(sums_);
  }
  return values;
}

EvaluationCollector::Fields ClassMetrics::fields() const {
  if (!with_classes_) return {};
  Fields fields = ClassCounts::fields();
  std::ranges::move(numbers_by_class(totals_of(pairs()), &curves_.report()),
                    std::back_inserter(fields.numbers));
  return fields;
}

std::string ClassMetrics::csv(const std::vector<std::string>& names) const {
  return with_classes_ ? ClassCounts::csv(names) : "";
}

Json ClassMetrics::report() const {
  if (!with_classes_) return nullptr;
  const ClassPairs all = pairs();
  const ClassTotals totals = totals_of(all);
  return class_report({.samples = std::accumulate(totals.own.begin(), totals.own.end(), 0.0),
                       .totals = totals,
                       .curves = &curves_.report(),
                       .pairs = &all,
                       .sums = &sums_});
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
  std::vector<std::string> metrics = registered_metrics(context);
  if (metrics.empty() && !with_classes) return nullptr;
  return std::make_unique<ClassMetrics>(context.classes(), std::move(metrics), with_classes);
}

std::unique_ptr<EvaluationCollector> number_metrics(const TaskContext& context) {
  std::vector<std::string> metrics = registered_metrics(context);
  if (metrics.empty()) return nullptr;
  return std::make_unique<NumberMetrics>(context.classes(), std::move(metrics));
}

}  // namespace fleet
