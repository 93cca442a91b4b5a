#include "models/class_totals.h"

#include <numeric>

namespace fleet {
namespace {

double part_of(double part, double all) { return all > 0 ? part / all : 0; }

ClassScores scores_from(double own, double predicted, double hits) {
  return {.precision = part_of(hits, predicted),
          .recall = part_of(hits, own),
          .f1 = part_of(2 * hits, own + predicted)};
}

ClassScores mean_of_classes(const ClassTotals& totals, const std::vector<double>& weights) {
  ClassScores sums;
  for (size_t c = 0; c < weights.size(); ++c) {
    const ClassScores one = scores_of_class(totals, static_cast<int64_t>(c));
    sums.precision += weights[c] * one.precision;
    sums.recall += weights[c] * one.recall;
    sums.f1 += weights[c] * one.f1;
  }
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  return {part_of(sums.precision, all), part_of(sums.recall, all), part_of(sums.f1, all)};
}

}  // namespace

ClassTotals totals_of(const ClassPairs& pairs) {
  const auto classes = static_cast<size_t>(pairs.classes);
  ClassTotals totals{std::vector<double>(classes), std::vector<double>(classes),
                     std::vector<double>(classes)};
  for (int64_t own = 0; own < pairs.classes; ++own) {
    for (int64_t predicted = 0; predicted < pairs.classes; ++predicted) {
      const double count = pairs.at(own, predicted);
      totals.own[own] += count;
      totals.predicted[predicted] += count;
    }
    totals.hits[own] = pairs.at(own, own);
  }
  return totals;
}

ClassScores scores_of_class(const ClassTotals& totals, int64_t c) {
  return scores_from(totals.own[c], totals.predicted[c], totals.hits[c]);
}

ClassScores macro_scores(const ClassTotals& totals, bool only_seen) {
  std::vector<double> weights;
  for (size_t c = 0; c < totals.own.size(); ++c) {
    weights.push_back(only_seen && totals.own[c] + totals.predicted[c] == 0 ? 0 : 1);
  }
  return mean_of_classes(totals, weights);
}

ClassScores weighted_scores(const ClassTotals& totals) {
  return mean_of_classes(totals, totals.own);
}

ClassScores micro_scores(const ClassTotals& totals) {
  const auto sum = [](const std::vector<double>& all) {
    return std::accumulate(all.begin(), all.end(), 0.0);
  };
  return scores_from(sum(totals.own), sum(totals.predicted), sum(totals.hits));
}

}  // namespace fleet
