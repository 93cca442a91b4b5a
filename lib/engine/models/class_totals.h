// How often each class is true and predicted.
#pragma once

#include <cstdint>
#include <vector>

#include "models/class_pairs.h"

namespace fleet {

// By class; whole numbers.
struct ClassTotals {
  std::vector<double> own, predicted, hits;  // true; predicted; both
};

// Of samples with any number of classes.
struct LabelCounts {
  double samples = 0;
  double exact = 0;  // samples whose predicted classes are the true ones
  ClassTotals totals = {};
};

ClassTotals totals_of(const ClassPairs& pairs);

struct ClassScores {
  double precision = 0, recall = 0, f1 = 0;  // 0 where they are a division by 0
};
ClassScores scores_of_class(const ClassTotals& totals, int64_t c);

// precision_recall_fscore_support(average=...).
// macro: the mean over the classes, of which only_seen leaves out those that are neither true nor
// predicted.
ClassScores macro_scores(const ClassTotals& totals, bool only_seen);
ClassScores weighted_scores(const ClassTotals& totals);  // by the samples of a class
ClassScores micro_scores(const ClassTotals& totals);     // all classes as one

}  // namespace fleet
