// How the scores of each class order the samples: exact, over all ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "models/task.h"

namespace fleet {

// The order of all samples by the score of one class. ROC and precision-recall curves, and the
// areas below them, follow from it.
struct ScoreCurve {
  struct Point {
    float score = 0;
    double positives = 0;        // samples of the class with this score
    double negatives_above = 0;  // other samples with a higher score
    double negatives = 0;        // other samples with this score
  };
  double positives = 0, negatives = 0;  // in all
  // Each score that a positive sample has, the highest first.
  std::vector<Point> points;
};

// roc_auc_score: the probability that a positive sample has a higher score than a negative one;
// equal scores count half. NaN if either kind is missing.
double area_under_roc(const ScoreCurve& curve);
// average_precision_score: the sum over the scores, from the highest down, of precision times the
// gain in recall; samples of one score count together. NaN without a positive sample.
double average_precision(const ScoreCurve& curve);

// The scores of this rank's samples: 4 bytes for each sample and class, and 4 more for each
// positive one. Never copied, and never sent: ranks exchange the scores of positive samples, and
// counts, for some classes at a time. Not thread-safe.
class ScoreTable {
 public:
  explicit ScoreTable(int64_t classes);

  // A new sample: [classes] scores, to be written before the next call. A score that is not a
  // number must be written as -INFINITY.
  std::span<float> add_sample();
  // The newest sample, whose scores are written, has this class.
  void add_positive(int64_t c);

  // Calls `visit` with each class in turn, over all ranks. Collective.
  using Visit = std::function<void(int64_t c, const ScoreCurve& curve)>;
  void for_each_class(RankExchange& ranks, const Visit& visit) const;

 private:
  struct Classes;
  Classes thresholds_of(int64_t begin, int64_t end, RankExchange& ranks) const;
  void count(Classes* classes) const;

  const int64_t classes_, rows_per_block_;
  int64_t samples_ = 0;
  std::vector<std::unique_ptr<float[]>> blocks_;  // [rows_per_block_, classes_] each
  std::vector<std::vector<float>> positives_;     // by class
};

}  // namespace fleet
