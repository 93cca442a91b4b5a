// Top-k accuracies: whether the label is among the k likeliest classes.
#include "models/named_metrics.h"

namespace fleet {
namespace {

void define_top(NamedMetric* def, size_t k) {
  def->help = "part of the samples whose class is among the " + std::to_string(k) + " likeliest";
  def->least_classes = static_cast<int64_t>(k) + 1;  // of fewer, every sample would be a hit
  def->of_scores = [k](const ScoreSums& sums) {
    double hits = 0, samples = 0;
    for (size_t place = 0; place < sums.places.size(); ++place) {
      // The last element counts scores that are not numbers.
      if (place < k && place + 1 < sums.places.size()) hits += sums.places[place];
      samples += sums.places[place];
    }
    return samples > 0 ? hits / samples : 0;
  };
}

}  // namespace

FLEET_METRIC(acc2) { define_top(&def, 2); }
FLEET_METRIC(acc3) { define_top(&def, 3); }
FLEET_METRIC(acc10) { define_top(&def, 10); }

}  // namespace fleet
