// Metrics of the distances between numbers, as scikit-learn defines them.
#include <algorithm>
#include <cmath>

#include "models/named_metrics.h"

namespace fleet {
namespace {

using Numbers = std::span<const double>;

double mean_square(Numbers targets, Numbers predictions) {
  double sum = 0;
  for (size_t i = 0; i < targets.size(); ++i) {
    sum += (targets[i] - predictions[i]) * (targets[i] - predictions[i]);
  }
  return targets.empty() ? std::nan("") : sum / static_cast<double>(targets.size());
}

double mean_distance(Numbers targets, Numbers predictions) {
  double sum = 0;
  for (size_t i = 0; i < targets.size(); ++i) sum += std::abs(targets[i] - predictions[i]);
  return targets.empty() ? std::nan("") : sum / static_cast<double>(targets.size());
}

double explained(Numbers targets, Numbers predictions) {
  if (targets.size() < 2) return std::nan("");
  const auto count = static_cast<double>(targets.size());
  double sum = 0, spread = 0;
  for (const double target : targets) sum += target;
  const bool constant = std::ranges::all_of(targets, [&](double one) { return one == targets[0]; });
  for (const double target : targets) {
    spread += constant ? 0 : (target - sum / count) * (target - sum / count);
  }
  const double error = mean_square(targets, predictions) * count;
  // Without spread: 1 if all predictions are exact, else 0.
  return spread > 0 ? 1 - error / spread : error == 0 ? 1 : error > 0 ? 0 : std::nan("");
}

}  // namespace

FLEET_METRIC(r2) {
  def.help = "part of the spread of the targets that predictions explain; 1 is right";
  def.of_numbers = explained;
}

FLEET_METRIC(mae) {
  def.help = "mean distance of targets and predictions";
  def.of_numbers = mean_distance;
  def.larger_is_better = false;
}

FLEET_METRIC(rmse) {
  def.help = "square root of the mean squared distance of targets and predictions";
  def.of_numbers = [](Numbers targets, Numbers predictions) {
    return std::sqrt(mean_square(targets, predictions));
  };
  def.larger_is_better = false;
}

}  // namespace fleet
