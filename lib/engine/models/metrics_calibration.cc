// Whether probabilities say how often they are right.
#include <cmath>

#include "models/named_metrics.h"

namespace fleet {

FLEET_METRIC(ece) {
  def.help =
      "expected calibration error: distance of confidence and accuracy, in 15 bins of confidence";
  def.of_scores = [](const ScoreSums& sums) {
    double samples = 0, error = 0;
    for (const CalibrationBin& bin : sums.bins) {
      samples += bin.samples;
      error += std::abs(bin.hits - bin.confidence);
    }
    return samples > 0 ? error / samples : 0;
  };
  def.larger_is_better = false;
}

}  // namespace fleet
