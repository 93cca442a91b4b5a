#include "models/score_sums.h"

#include <algorithm>
#include <cmath>

namespace fleet {
namespace {

// A float of 2^-17 or more, as the largest of 131,072 probabilities, is a multiple of 2^-40.
constexpr double kUnit = 1.0 / (int64_t{1} << 40);
// Sums of more than 53 bits go to other ranks in two parts.
constexpr int64_t kLowPart = int64_t{1} << 26;

size_t bin_of_confidence(float confidence) {
  const auto edge = [](size_t i) {
    return static_cast<float>(static_cast<double>(i) / kCalibrationBins);
  };
  if (!(confidence > 0)) return 0;
  size_t bin =
      std::min<size_t>(static_cast<size_t>(confidence * kCalibrationBins), kCalibrationBins);
  while (bin > 0 && confidence < edge(bin)) --bin;
  while (bin < kCalibrationBins && confidence >= edge(bin + 1)) ++bin;
  return bin;
}

}  // namespace

void ScoreSummer::add_place(std::span<const float> logits, int64_t label) {
  const float own = logits[label];
  size_t before = 0;
  for (size_t c = 0; c < logits.size(); ++c) before += logits[c] > own ? 1 : 0;
  for (size_t c = 0; c < static_cast<size_t>(label); ++c) before += logits[c] == own ? 1 : 0;
  places_[std::isnan(own) ? logits.size() : before] += 1;
}

void ScoreSummer::add_confidence(float confidence, bool hit) {
  Bin& bin = bins_[bin_of_confidence(confidence)];
  bin.samples += 1;
  bin.hits += hit ? 1 : 0;
  if (confidence > 0) bin.confidence += std::llround(static_cast<double>(confidence) / kUnit);
}

ScoreSums ScoreSummer::finish(RankExchange& ranks) const {
  std::vector<double> sums = places_;
  for (const Bin& bin : bins_) {
    sums.insert(sums.end(), {static_cast<double>(bin.samples), static_cast<double>(bin.hits),
                             static_cast<double>(bin.confidence / kLowPart),
                             static_cast<double>(bin.confidence % kLowPart)});
  }
  ranks.sum(sums);
  ScoreSums all{.places = {sums.begin(), sums.begin() + static_cast<int64_t>(places_.size())}};
  const double* sum = sums.data() + places_.size();
  for (CalibrationBin& bin : all.bins) {
    bin = {.samples = sum[0], .hits = sum[1], .confidence = (sum[2] * kLowPart + sum[3]) * kUnit};
    sum += 4;
  }
  return all;
}

double softmax_scores(std::span<const float> logits, int64_t label, std::span<float> scores,
                      std::vector<double>* exponentials) {
  const double largest = *std::ranges::max_element(logits);
  exponentials->resize(logits.size());
  double sum = 0;
  for (size_t c = 0; c < logits.size(); ++c) {
    sum += (*exponentials)[c] = std::exp(logits[c] - largest);
  }
  if (!std::isfinite(sum)) {
    std::ranges::fill(scores, -INFINITY);
    return INFINITY;
  }
  for (size_t c = 0; c < logits.size(); ++c) {
    scores[c] = static_cast<float>((*exponentials)[c] / sum);
  }
  return std::log(sum) + largest - logits[label];
}

}  // namespace fleet
