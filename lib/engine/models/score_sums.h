// Sums over a classifier's scores of all samples; score_curves.h has their order.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "models/task.h"

namespace fleet {

// The samples whose confidence, from 0 to 1, is in [i/15, (i+1)/15). The last bin has those of
// confidence 1, as torchmetrics counts them.
struct CalibrationBin {
  double samples = 0, hits = 0, confidence = 0;  // sums
};
constexpr int kCalibrationBins = 15;

// Over all samples with one label each.
struct ScoreSums {
  // By place from 0: samples of whose scores so many are before that of the label. Of equal scores
  // the first class comes first, as in torch.topk(). The last element: scores that are not numbers.
  std::vector<double> places;
  std::array<CalibrationBin, kCalibrationBins + 1> bins;
};

// It adds integers, so ranks and batches do not change their bits. Not thread-safe.
class ScoreSummer {
 public:
  explicit ScoreSummer(int64_t classes) : places_(static_cast<size_t>(classes + 1)) {}
  void add_place(std::span<const float> logits, int64_t label);
  // Of two classes, the confidence is the probability of class 1, and class 1 is a hit.
  void add_confidence(float confidence, bool hit);
  // Combines the ranks. Collective.
  ScoreSums finish(RankExchange& ranks) const;

 private:
  struct Bin {
    int64_t samples = 0, hits = 0, confidence = 0;  // in units of 2^-40
  };
  std::vector<double> places_;
  std::array<Bin, kCalibrationBins + 1> bins_ = {};
};

// A row's probabilities by softmax: computed in double, rounded to float. -INFINITY for a row with
// a logit that is not a number, or with an infinite one. Returns the row's cross entropy, infinity
// for such a row.
// exponentials: room that is reused.
double softmax_scores(std::span<const float> logits, int64_t label, std::span<float> scores,
                      std::vector<double>* exponentials);

}  // namespace fleet
