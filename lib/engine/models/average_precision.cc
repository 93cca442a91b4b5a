#include "models/average_precision.h"

#include <algorithm>
#include <cmath>

namespace fleet {

double average_precision(std::vector<std::pair<float, bool>> scores) {
  for (auto& [score, positive] : scores) {
    if (std::isnan(score)) score = -INFINITY;
  }
  std::ranges::sort(scores, [](const auto& a, const auto& b) { return a.first > b.first; });
  const auto positives = static_cast<double>(
      std::ranges::count_if(scores, [](const auto& one) { return one.second; }));
  if (positives == 0) return std::nan("");
  double sum = 0, hits = 0;
  for (size_t begin = 0, end = 0; begin < scores.size(); begin = end) {
    double gained = 0;
    for (; end < scores.size() && scores[end].first == scores[begin].first; ++end) {
      gained += scores[end].second ? 1 : 0;
    }
    hits += gained;
    sum += gained * hits / static_cast<double>(end);
  }
  return sum / positives;
}

void AveragePrecisions::add(const Rows& rows) {
  const std::span<const float> logits = rows.output("logits");
  const auto targets = rows.column_as<float>("targets"), weights = rows.column_as<float>("weight");
  for (int64_t n = 0; n < rows.size; ++n) {
    if (weights[n] == 0) continue;
    for (int64_t c = 0; c < classes_; ++c) rows_.push_back(logits[n * classes_ + c]);
    for (int64_t c = 0; c < classes_; ++c) rows_.push_back(targets[n * classes_ + c]);
  }
}

void AveragePrecisions::finish(RankExchange& ranks) {
  const std::vector<std::vector<double>> all = ranks.gather(rows_);
  for (int64_t c = 0; c < classes_; ++c) {
    std::vector<std::pair<float, bool>> scores;
    for (const std::vector<double>& rank : all) {
      for (size_t row = 0; row < rank.size(); row += static_cast<size_t>(2 * classes_)) {
        scores.emplace_back(static_cast<float>(rank[row + c]), rank[row + classes_ + c] > 0.5);
      }
    }
    precisions_.push_back(average_precision(std::move(scores)));
  }
}

std::map<std::string, double> AveragePrecisions::metrics() const {
  double sum = 0, classes = 0;
  for (const double precision : precisions_) {
    if (std::isnan(precision)) continue;
    sum += precision;
    classes += 1;
  }
  return {{"mAP", classes > 0 ? sum / classes : 0}};
}

}  // namespace fleet
