// Counts the predicted class of each sample of an evaluation.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "train/rank_coordinator.h"

namespace fleet {

// A confusion matrix: rows are the true classes of the samples, columns the predicted ones (largest
// logit). Not thread-safe.
class ClassCounts {
 public:
  explicit ClassCounts(int64_t classes) : classes_(classes), counts_(classes * classes) {}

  // logits: [N, classes]; labels, weights: [N]. Skips samples of weight 0 and labels outside the
  // classes (train.ignore_index); among equal logits the first one wins.
  void add(std::span<const float> logits, std::span<const int64_t> labels,
           std::span<const float> weights);
  // Sums over all ranks, in place.
  void sum(RankCoordinator& control) { control.sum(counts_); }

  int64_t count(int64_t own, int64_t taken_for) const {
    return static_cast<int64_t>(counts_[own * classes_ + taken_for]);
  }
  std::vector<int64_t> samples() const;    // per class
  std::vector<double> accuracies() const;  // per class; NaN for a class without samples
  // One line per class, with its counts separated by commas; the first line names the columns.
  // names: the classes'; a class without a name appears as its number.
  std::string csv(const std::vector<std::string>& names) const;

 private:
  int64_t classes_;
  std::vector<double> counts_;  // exact up to 2^53
};

}  // namespace fleet
