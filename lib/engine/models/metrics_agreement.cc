// Metrics of classes that discount chance, or the size of classes.
#include <cmath>

#include "models/named_metrics.h"

namespace fleet {

FLEET_METRIC(balanced_accuracy) {
  def.help = "mean recall of the classes that samples have";
  def.of_classes = [](const ClassPairs& pairs) {
    const ClassTotals totals = totals_of(pairs);
    double sum = 0, classes = 0;
    for (size_t c = 0; c < totals.own.size(); ++c) {
      if (totals.own[c] == 0) continue;
      sum += totals.hits[c] / totals.own[c];
      classes += 1;
    }
    return classes > 0 ? sum / classes : 0;
  };
}

FLEET_METRIC(kappa) {
  def.help = "agreement of true and predicted classes beyond chance (Cohen), from -1 to 1";
  def.of_classes = [](const ClassPairs& pairs) {
    const ClassTotals totals = totals_of(pairs);
    double samples = 0, hits = 0, chance = 0;
    for (size_t c = 0; c < totals.own.size(); ++c) {
      samples += totals.own[c];
      hits += totals.hits[c];
      chance += totals.own[c] * totals.predicted[c];
    }
    // Of samples^2: not a number if all samples have, and are given, one class.
    const double beyond = samples * samples - chance;
    return beyond > 0 ? (hits * samples - chance) / beyond : std::nan("");
  };
}

}  // namespace fleet
