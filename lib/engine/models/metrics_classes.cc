#include "models/metrics_classes.h"

#include <cmath>
#include <vector>

#include "models/named_metrics.h"

namespace fleet {
namespace {

struct ClassTotals {
  std::vector<double> own, predicted;  // samples by true and by predicted class
  double samples = 0, hits = 0;
};

ClassTotals totals_of(const ClassPairs& pairs) {
  ClassTotals totals{std::vector<double>(pairs.classes), std::vector<double>(pairs.classes)};
  for (int64_t own = 0; own < pairs.classes; ++own) {
    for (int64_t predicted = 0; predicted < pairs.classes; ++predicted) {
      const double count = pairs.at(own, predicted);
      totals.own[own] += count;
      totals.predicted[predicted] += count;
      totals.samples += count;
      if (own == predicted) totals.hits += count;
    }
  }
  return totals;
}

double f1_of(double hits, double both) { return both > 0 ? 2 * hits / both : 0; }

}  // namespace

double accuracy(const ClassPairs& pairs) {
  const ClassTotals totals = totals_of(pairs);
  return totals.samples > 0 ? totals.hits / totals.samples : 0;
}

double f1_of_class(const ClassPairs& pairs, int64_t positive) {
  const ClassTotals totals = totals_of(pairs);
  return f1_of(pairs.at(positive, positive), totals.own[positive] + totals.predicted[positive]);
}

double macro_f1(const ClassPairs& pairs) {
  const ClassTotals totals = totals_of(pairs);
  double sum = 0, classes = 0;
  for (int64_t c = 0; c < pairs.classes; ++c) {
    const double both = totals.own[c] + totals.predicted[c];
    if (both == 0) continue;
    sum += f1_of(pairs.at(c, c), both);
    classes += 1;
  }
  return classes > 0 ? sum / classes : 0;
}

double matthews(const ClassPairs& pairs) {
  const ClassTotals totals = totals_of(pairs);
  const double all = totals.samples * totals.samples;
  double both = 0, own = 0, predicted = 0;
  for (int64_t c = 0; c < pairs.classes; ++c) {
    both += totals.own[c] * totals.predicted[c];
    own += totals.own[c] * totals.own[c];
    predicted += totals.predicted[c] * totals.predicted[c];
  }
  const double spread = (all - own) * (all - predicted);
  return spread > 0 ? (totals.hits * totals.samples - both) / std::sqrt(spread) : 0;
}

FLEET_METRIC(accuracy) {
  def.help = "part of the samples, or tokens, whose class is predicted";
  def.of_classes = accuracy;
  def.of_entities = [](const EntityCounts& counts) {
    return counts.tags > 0 ? counts.correct_tags / counts.tags : 0;
  };
}

FLEET_METRIC(f1) {
  def.help = "F1 of class 1 of two classes; of answers: overlap of their words with the right ones";
  def.binary = true;
  def.of_classes = [](const ClassPairs& pairs) { return f1_of_class(pairs, 1); };
  def.of_answers = [](const AnswerSums& sums) {
    return sums.questions > 0 ? sums.f1 / sums.questions : 0;
  };
}

FLEET_METRIC(macro_f1) {
  def.help = "mean F1 of the classes that occur";
  def.of_classes = macro_f1;
}

FLEET_METRIC(matthews) {
  def.help = "correlation of true and predicted classes (Matthews), from -1 to 1";
  def.of_classes = matthews;
}

}  // namespace fleet
