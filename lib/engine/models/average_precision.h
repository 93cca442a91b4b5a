// Mean average precision, collected by an evaluation.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/task.h"

namespace fleet {

// The average precision of one class (scikit-learn's average_precision_score): the sum over the
// ranks, from the highest score down, of precision times the gain in recall; samples of one score
// count together. NaN without a positive sample. A score that is not a number is the lowest.
double average_precision(std::vector<std::pair<float, bool>> scores);

// Keeps the scores of all samples: exact, whatever the batches and the number of ranks. Not
// thread-safe.
class AveragePrecisions : public EvaluationCollector {
 public:
  explicit AveragePrecisions(int64_t classes) : classes_(classes) {}

  std::vector<std::string> outputs() const override { return {"logits"}; }
  // Columns "targets", float32 [N, classes] (above 0.5: positive), and "weight": skips samples of
  // weight 0.
  void add(const Rows& rows) override;
  void finish(RankExchange& ranks) override;
  // "mAP": the mean over the classes that have a positive sample.
  std::map<std::string, double> metrics() const override;
  // "class_ap", one value per class; NaN for a class without a positive sample.
  Fields fields() const override {
    return {.integers = {}, .numbers = {{"class_ap", precisions_}}};
  }

 private:
  int64_t classes_;
  std::vector<double> rows_;  // per sample: scores by class, then targets by class
  std::vector<double> precisions_;
};

}  // namespace fleet
