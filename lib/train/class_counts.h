// Which class each sample of an evaluation was taken for.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "train/control.h"

namespace fleet {

// A confusion matrix: its rows are the samples' own classes, its columns those that the model gave
// the largest logit. Not thread-safe.
class ClassCounts {
 public:
  explicit ClassCounts(int64_t classes) : classes_(classes), counts_(classes * classes) {}

  // logits: [N, classes]; labels, weights: [N]. Samples of weight 0, and labels that are no class
  // (train.ignore_index), are left out; among equal logits the first one counts.
  void add(std::span<const float> logits, std::span<const int64_t> labels,
           std::span<const float> weights);
  // Over all ranks, in place.
  void sum(Control& control) { control.sum(counts_); }

  int64_t count(int64_t own, int64_t taken_for) const {
    return static_cast<int64_t>(counts_[own * classes_ + taken_for]);
  }
  std::vector<int64_t> samples() const;    // of each class
  std::vector<double> accuracies() const;  // of each class; NaN where it has no samples
  // A line a class, its counts with commas between them; the first line names the columns. names:
  // of the classes; one that is not there is its number.
  std::string csv(const std::vector<std::string>& names) const;

 private:
  int64_t classes_;
  std::vector<double> counts_;  // exact up to 2^53
};

}  // namespace fleet
