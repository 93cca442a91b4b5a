#include "models/metrics_clicks.h"

#include <algorithm>
#include <cmath>

namespace fleet {
namespace {

size_t bin_of(double logit, size_t bins) {
  if (std::isnan(logit)) return 0;
  if (std::isinf(logit)) return logit > 0 ? bins - 1 : 0;
  const double place = (logit / (1 + std::abs(logit)) + 1) / 2;  // 0 to 1
  return std::min(bins - 1, static_cast<size_t>(place * static_cast<double>(bins)));
}

double ratio(double part, double of) { return of > 0 ? part / of : std::nan(""); }

}  // namespace

ClickCounts click_counts(int64_t bins) {
  ClickCounts counts;
  counts.positives.resize(static_cast<size_t>(bins));
  counts.negatives.resize(static_cast<size_t>(bins));
  return counts;
}

void add_click(float logit, float label, ClickCounts* counts) {
  const double z = logit, t = label;
  counts->samples += 1;
  counts->clicks += t;
  counts->predicted += 1 / (1 + std::exp(-z));
  counts->log_loss += std::max(z, 0.0) - z * t + std::log1p(std::exp(-std::abs(z)));
  (t > 0.5 ? counts->positives : counts->negatives)[bin_of(z, counts->positives.size())] += 1;
}

void count_exactly(std::vector<ScoredClick> samples, ClickCounts* counts) {
  for (ScoredClick& sample : samples) {
    if (std::isnan(sample.logit)) sample.logit = -INFINITY;
  }
  std::ranges::sort(samples, {}, &ScoredClick::logit);
  counts->positives.clear();
  counts->negatives.clear();
  for (size_t i = 0; i < samples.size(); ++i) {
    if (i == 0 || samples[i].logit != samples[i - 1].logit) {
      counts->positives.push_back(0);
      counts->negatives.push_back(0);
    }
    (samples[i].happened ? counts->positives : counts->negatives).back() += 1;
  }
}

double area_under_curve(const ClickCounts& counts) {
  double below = 0, positives = 0, pairs = 0;  // below: negatives of lower bins
  for (size_t bin = 0; bin < counts.positives.size(); ++bin) {
    pairs += counts.positives[bin] * (below + counts.negatives[bin] / 2);
    below += counts.negatives[bin];
    positives += counts.positives[bin];
  }
  return ratio(pairs, positives * below);
}

FLEET_METRIC(auc) {
  def.help = "area under the ROC curve of probabilities, exact for up to train.auc_bins samples";
  def.of_clicks = area_under_curve;
}

FLEET_METRIC(logloss) {
  def.help = "mean binary cross entropy of probabilities";
  def.of_clicks = [](const ClickCounts& counts) { return ratio(counts.log_loss, counts.samples); };
  def.larger_is_better = false;
}

FLEET_METRIC(calibration) {
  def.help = "mean predicted probability / mean label; 1 is right";
  def.of_clicks = [](const ClickCounts& counts) { return ratio(counts.predicted, counts.clicks); };
  def.larger_is_better = false;
}

}  // namespace fleet
