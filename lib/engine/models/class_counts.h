// A confusion matrix, collected by an evaluation.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/class_pairs.h"
#include "models/task.h"

namespace fleet {

// Rows are the true classes of the samples, columns the predicted ones (largest logit). Not
// thread-safe.
class ClassCounts : public EvaluationCollector {
 public:
  explicit ClassCounts(int64_t classes) : classes_(classes), counts_(classes * classes) {}

  std::vector<std::string> outputs() const override { return {"logits"}; }
  void add(const Rows& rows) override;
  void finish(RankExchange& ranks) override { ranks.sum(counts_); }
  // "class_samples" and "class_acc1", one value per class; NaN for a class without samples.
  Fields fields() const override;
  // One line per class, with its counts separated by commas; the first line names the columns. A
  // class without a name appears as its number.
  std::string csv(const std::vector<std::string>& names) const override;

  // logits: [N, classes]; labels, weights: [N]. Skips samples of weight 0 and labels outside the
  // classes (train.ignore_index); among equal logits the first one wins.
  void add(std::span<const float> logits, std::span<const int64_t> labels,
           std::span<const float> weights);
  int64_t count(int64_t own, int64_t taken_for) const {
    return static_cast<int64_t>(counts_[own * classes_ + taken_for]);
  }
  ClassPairs pairs() const { return {classes_, counts_}; }
  int64_t classes() const { return classes_; }
  std::vector<int64_t> samples() const;    // per class
  std::vector<double> accuracies() const;  // per class; NaN for a class without samples

 protected:
  // The class of the largest logit, as the accuracy counts it: a logit that is not a number is the
  // lowest, and no hit.
  static int64_t predicted_class(std::span<const float> logits, int64_t label);
  // Skips labels outside the classes.
  void count_pair(int64_t own, int64_t predicted) {
    if (own >= 0 && own < classes_) counts_[own * classes_ + predicted] += 1;
  }

 private:
  int64_t classes_;
  std::vector<double> counts_;  // whole numbers, exact up to 2^53
};

}  // namespace fleet
