#include "models/label_metrics.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace fleet {
namespace {

double sigmoid(double logit) { return 1 / (1 + std::exp(-logit)); }

// The mean binary cross entropy of a sample's classes.
double mean_cross_entropy(std::span<const float> logits, std::span<const float> targets) {
  double sum = 0;
  for (size_t c = 0; c < logits.size(); ++c) {
    const double z = logits[c];
    sum += std::max(z, 0.0) - z * targets[c] + std::log1p(std::exp(-std::abs(z)));
  }
  return sum / static_cast<double>(logits.size());
}

}  // namespace

LabelMetrics::LabelMetrics(int64_t classes, std::vector<std::string> metrics, bool with_classes)
    : classes_(classes),
      metrics_(std::move(metrics)),
      with_classes_(with_classes),
      curves_(classes, metrics_, false, with_classes) {
  const auto count = static_cast<size_t>(classes);
  counts_.totals = {std::vector<double>(count), std::vector<double>(count),
                    std::vector<double>(count)};
}

void LabelMetrics::add(const Rows& rows) {
  const std::span<const float> logits = rows.output("logits");
  const auto targets = rows.column_as<float>("targets"), weights = rows.column_as<float>("weight");
  for (int64_t n = 0; n < rows.size; ++n) {
    if (weights[n] == 0) continue;
    add_sample(logits.subspan(n * classes_, classes_), targets.subspan(n * classes_, classes_),
               rows.samples.empty() ? -1 : rows.samples[n]);
  }
}

void LabelMetrics::add_sample(std::span<const float> logits, std::span<const float> targets,
                              int64_t sample) {
  ScoreTable* table = curves_.table();
  const std::span<float> scores = table ? table->add_sample() : std::span<float>();
  for (size_t c = 0; c < scores.size(); ++c) {
    scores[c] = std::isnan(logits[c]) ? -INFINITY : logits[c];
  }
  WorstSample worst{.sample = sample};
  bool exact = true;
  for (int64_t c = 0; c < classes_; ++c) {
    const bool own = targets[c] > 0.5F, predicted = logits[c] >= 0;
    if (own && table) table->add_positive(c);
    counts_.totals.own[c] += own ? 1 : 0;
    counts_.totals.predicted[c] += predicted ? 1 : 0;
    counts_.totals.hits[c] += own && predicted ? 1 : 0;
    exact = exact && own == predicted;
    if (own) worst.expected.push_back(c);
    if (predicted) worst.predicted.push_back(c);
  }
  counts_.samples += 1;
  counts_.exact += exact ? 1 : 0;
  if (!with_classes_) return;
  worst.loss = mean_cross_entropy(logits, targets);
  if (!worst.predicted.empty()) worst.probability = sigmoid(logits[worst.predicted[0]]);
  worst_.add(std::move(worst));
}

void LabelMetrics::finish(RankExchange& ranks) {
  std::vector<double> sums = {counts_.samples, counts_.exact};
  ClassTotals& totals = counts_.totals;
  for (const auto* part : {&totals.own, &totals.predicted, &totals.hits}) {
    sums.insert(sums.end(), part->begin(), part->end());
  }
  ranks.sum(sums);
  counts_.samples = sums[0];
  counts_.exact = sums[1];
  auto at = sums.begin() + 2;
  for (auto* part : {&totals.own, &totals.predicted, &totals.hits}) {
    std::copy_n(at, classes_, part->begin());
    at += classes_;
  }
  curves_.finish(ranks);
  worst_.finish(ranks);
}

std::map<std::string, double> LabelMetrics::metrics() const {
  std::map<std::string, double> values = curves_.values();
  for (const std::string& name : metrics_) {
    const NamedMetric& metric = named_metric_registry().get(name);
    if (metric.of_labels) values[name] = metric.of_labels(counts_);
  }
  return values;
}

EvaluationCollector::Fields LabelMetrics::fields() const {
  if (!with_classes_) {
    return {.integers = {}, .numbers = {{"class_ap", curves_.report().precisions()}}};
  }
  Fields fields{.integers = {{"class_samples", class_support()}}, .numbers = {}};
  std::ranges::move(numbers_by_class(counts_.totals, &curves_.report()),
                    std::back_inserter(fields.numbers));
  return fields;
}

std::vector<int64_t> LabelMetrics::class_support() const {
  return {counts_.totals.own.begin(), counts_.totals.own.end()};
}

Json LabelMetrics::report() const {
  if (!with_classes_) return nullptr;
  return class_report({.exclusive = false,
                       .samples = counts_.samples,
                       .totals = counts_.totals,
                       .curves = &curves_.report()});
}

std::unique_ptr<EvaluationCollector> label_metrics(const TaskContext& context,
                                                   const std::vector<std::string>& always) {
  std::vector<std::string> metrics = always;
  for (const std::string& name : registered_metrics(context)) {
    if (std::ranges::find(metrics, name) == metrics.end()) metrics.push_back(name);
  }
  return std::make_unique<LabelMetrics>(context.classes(), std::move(metrics),
                                        context.settings().boolean("evaluate_classes"));
}

}  // namespace fleet
