#include "train/class_counts.h"

#include <algorithm>
#include <cmath>

namespace fleet {

void ClassCounts::add(std::span<const float> logits, std::span<const int64_t> labels,
                      std::span<const float> weights) {
  for (size_t i = 0; i < labels.size(); ++i) {
    if (weights[i] == 0 || labels[i] < 0 || labels[i] >= classes_) continue;
    const auto row = logits.subspan(i * classes_, classes_);
    const auto largest = std::max_element(row.begin(), row.end());
    counts_[labels[i] * classes_ + (largest - row.begin())] += 1;
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

std::string ClassCounts::csv() const {
  std::string text = "class";
  for (int64_t other = 0; other < classes_; ++other) text += "," + std::to_string(other);
  for (int64_t own = 0; own < classes_; ++own) {
    text += "\n" + std::to_string(own);
    for (int64_t other = 0; other < classes_; ++other)
      text += "," + std::to_string(count(own, other));
  }
  return text + "\n";
}

}  // namespace fleet
