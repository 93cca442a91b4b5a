// The results of the evaluations so far; part of a checkpoint.
#pragma once

#include <cstdint>
#include <string>

namespace fleet {

// The best value of a metric so far.
struct BestValue {
  std::string metric;  // "": no metric is followed
  double value = 0;
  int64_t step = -1;  // -1: none yet

  bool operator==(const BestValue&) const = default;
};

struct EvaluationRecord {
  BestValue kept;              // for checkpoint.keep_best
  BestValue stopping;          // for train.early_stopping
  int64_t without = 0;         // evaluations since the last improvement
  int64_t observed_step = -1;  // the last evaluation's

  bool operator==(const EvaluationRecord&) const = default;
};

}  // namespace fleet
