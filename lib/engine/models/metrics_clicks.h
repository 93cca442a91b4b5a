// Metrics of predicted probabilities of events, such as clicks. Pure functions.
#pragma once

#include <cstdint>

#include "models/named_metrics.h"

namespace fleet {

// Empty histograms of this many bins. They have equal width in z / (1 + |z|), where z is the logit:
// fine for rare events, too.
ClickCounts click_counts(int64_t bins);

// Adds a sample. label: 0 to 1; above 0.5 the event happened. A logit that is not a number is in
// the lowest bin, and makes log_loss and predicted NaN.
void add_click(float logit, float label, ClickCounts* counts);

struct ScoredClick {
  double logit = 0;
  bool happened = false;
};
// Replaces the histograms by those with a bin for each different logit. A logit that is not a
// number is the lowest.
void count_exactly(std::vector<ScoredClick> samples, ClickCounts* counts);

// The area under the receiver operating characteristic: the part of all pairs of a positive and a
// negative sample in which the positive one is in a higher bin; a pair in one bin counts one half,
// so that ties count as in scikit-learn's roc_auc_score. NaN without a pair.
double area_under_curve(const ClickCounts& counts);

}  // namespace fleet
