#include "models/metrics_classes.h"

#include <cmath>
#include <vector>

#include "models/named_metrics.h"

namespace fleet {

double accuracy(const ClassPairs& pairs) { return micro_scores(totals_of(pairs)).recall; }

double f1_of_class(const ClassPairs& pairs, int64_t positive) {
  return scores_of_class(totals_of(pairs), positive).f1;
}

double macro_f1(const ClassPairs& pairs) { return macro_scores(totals_of(pairs), true).f1; }

double matthews(const ClassPairs& pairs) {
  const ClassTotals totals = totals_of(pairs);
  double samples = 0, hits = 0, both = 0, own = 0, predicted = 0;
  for (int64_t c = 0; c < pairs.classes; ++c) {
    samples += totals.own[c];
    hits += totals.hits[c];
    both += totals.own[c] * totals.predicted[c];
    own += totals.own[c] * totals.own[c];
    predicted += totals.predicted[c] * totals.predicted[c];
  }
  const double all = samples * samples;
  const double spread = (all - own) * (all - predicted);
  return spread > 0 ? (hits * samples - both) / std::sqrt(spread) : 0;
}

FLEET_METRIC(accuracy) {
  def.help =
      "part of the samples, or tokens, whose class is predicted; of several labels: that have all "
      "of them right";
  def.of_classes = accuracy;
  def.of_labels = [](const LabelCounts& counts) {
    return counts.samples > 0 ? counts.exact / counts.samples : 0;
  };
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

FLEET_METRIC(matthews) {
  def.help = "correlation of true and predicted classes (Matthews), from -1 to 1";
  def.of_classes = matthews;
}

}  // namespace fleet
