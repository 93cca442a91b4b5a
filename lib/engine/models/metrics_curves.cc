// Metrics of the order in which scores put the samples.
#include <cmath>

#include "models/named_metrics.h"

namespace fleet {

FLEET_METRIC(auroc) {
  def.help = "area under the ROC curve: each class against the others, the mean over the classes";
  def.of_curve = area_under_roc;
}

FLEET_METRIC(mAP) {
  def.help = "mean average precision of the classes that samples have";
  def.of_curve = average_precision;
}

FLEET_METRIC(average_precision) {
  def.help = "mean average precision of all classes; 0 for a class that no sample has";
  def.of_curve = [](const ScoreCurve& curve) {
    return curve.positives > 0 ? average_precision(curve) : 0;
  };
}

}  // namespace fleet
