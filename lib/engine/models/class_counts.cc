#include "models/class_counts.h"

#include <algorithm>
#include <cmath>

#include "base/csv.h"

namespace fleet {

int64_t ClassCounts::predicted_class(std::span<const float> logits, int64_t label) {
  const auto less = [](float a, float b) { return std::isnan(a) ? !std::isnan(b) : a < b; };
  const int64_t largest = std::max_element(logits.begin(), logits.end(), less) - logits.begin();
  if (!std::isnan(logits[largest])) return largest;
  return (label + 1) % static_cast<int64_t>(logits.size());
}

void ClassCounts::add(const Rows& rows) {
  const auto count = static_cast<size_t>(rows.size);
  add(rows.output("logits"), rows.column_as<int64_t>("label").first(count),
      rows.column_as<float>("weight").first(count));
}

void ClassCounts::add(std::span<const float> logits, std::span<const int64_t> labels,
                      std::span<const float> weights) {
  for (size_t i = 0; i < labels.size(); ++i) {
    if (weights[i] == 0 || labels[i] < 0 || labels[i] >= classes_) continue;
    const auto row = logits.subspan(i * classes_, classes_);
    counts_[labels[i] * classes_ + predicted_class(row, labels[i])] += 1;
  }
}

std::vector<int64_t> ClassCounts::samples() const {
  std::vector<int64_t> all(classes_);
  for (int64_t own = 0; own < classes_; ++own) {
    for (int64_t other = 0; other < classes_; ++other) all[own] += count(own, other);
  }
  return all;
}

std::vector<double> ClassCounts::accuracies() const {
  const std::vector<int64_t> all = samples();
  std::vector<double> accuracies(classes_, std::nan(""));
  for (int64_t own = 0; own < classes_; ++own) {
    if (all[own] > 0) accuracies[own] = static_cast<double>(count(own, own)) / all[own];
  }
  return accuracies;
}

EvaluationCollector::Fields ClassCounts::fields() const {
  return {.integers = {{"class_samples", samples()}}, .numbers = {{"class_acc1", accuracies()}}};
}

std::string ClassCounts::csv(const std::vector<std::string>& names) const {
  const auto name = [&](int64_t label) {
    const auto index = static_cast<size_t>(label);
    return index < names.size() ? csv_field(names[index]) : std::to_string(label);
  };
  std::string text = "class";
  for (int64_t other = 0; other < classes_; ++other) text += "," + name(other);
  for (int64_t own = 0; own < classes_; ++own) {
    text += "\n" + name(own);
    for (int64_t other = 0; other < classes_; ++other)
      text += "," + std::to_string(count(own, other));
  }
  return text + "\n";
}

}  // namespace fleet
