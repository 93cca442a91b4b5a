// Results of an evaluation for single classes and samples, for evaluation.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/class_totals.h"
#include "models/score_curves.h"
#include "models/score_sums.h"
#include "models/task.h"

namespace fleet {

// Keeps the samples of the largest losses. Not thread-safe.
class WorstSamples {
 public:
  // Whether a sample of this loss may be among them: asks before the rest of it is computed.
  bool takes(double loss) const;
  void add(WorstSample sample);
  // Combines the ranks; the samples do not depend on their number. Collective.
  void finish(RankExchange& ranks);
  const std::vector<WorstSample>& samples() const { return samples_; }

  static constexpr size_t kMost = 16;
  static constexpr size_t kMostClasses = 6;  // true ones, and predicted ones, for each sample

 private:
  void keep_worst();
  std::vector<WorstSample> samples_;
};

// Parts of the curves of all classes. Not thread-safe.
class CurveReport {
 public:
  explicit CurveReport(int64_t classes);
  void add(int64_t c, const ScoreCurve& curve);
  const std::vector<double>& areas() const { return areas_; }            // NaN: undefined
  const std::vector<double>& precisions() const { return precisions_; }  // NaN: undefined
  // The classes that have a curve: all of a few; of more, those of the least average precision.
  std::vector<int64_t> shown(bool exclusive) const;
  // Four numbers for each point, from the highest score down: the shares of negatives with a
  // higher score, of negatives and of positives with this or a higher one, and the precision.
  Json points(int64_t c) const { return points_[c]; }

 private:
  std::vector<double> areas_, precisions_;
  std::vector<Json> points_;
};

struct ClassReport {
  bool exclusive = true;  // a sample has one class
  double samples = 0;
  ClassTotals totals;
  const CurveReport* curves = nullptr;  // null: no curves
  const ClassPairs* pairs = nullptr;    // null: no confusion matrix
  const ScoreSums* sums = nullptr;      // null: no calibration
  // Of pixels: by class, NaN for one that is neither true nor predicted. Empty: not of pixels.
  std::vector<double> iou = {};
  int64_t few = 0;  // a class of fewer samples is named; 0: none is
};
// The content of evaluation.json, as docs/reference/metrics.md describes it, without samples.
Json class_report(const ClassReport& report);

// Lists by class for the line in metrics.jsonl. curves: may be null.
using NamedNumbers = std::vector<std::pair<std::string, std::vector<double>>>;
NamedNumbers numbers_by_class(const ClassTotals& totals, const CurveReport* curves);

}  // namespace fleet
