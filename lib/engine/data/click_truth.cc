#include "data/click_truth.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>

#include "base/error.h"

namespace fleet::data {
namespace {

constexpr int64_t kFactors = 4;  // dimension of v
constexpr int64_t kBiasRows = 1 << 16;
constexpr uint64_t kTruthPart = 0x7472757468u;  // "truth", "bias": parts that no split has
constexpr int64_t kBiasPart = 0x62696173;

double sigmoid(double z) { return 1 / (1 + std::exp(-z)); }

// A weight for each id of a slot; their sum is not 1.
std::vector<double> zipf_weights(const ClickTruthOptions& options) {
  std::vector<double> weights(static_cast<size_t>(options.slot_ids));
  for (size_t i = 0; i < weights.size(); ++i) {
    weights[i] = std::pow(static_cast<double>(i + 1), -options.exponent);
  }
  return weights;
}

std::vector<double> normalized(std::vector<double> weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= sum;
  return weights;
}

// Draws from splitmix64's sequence.
class Draws {
 public:
  explicit Draws(uint64_t key) : key_(key) {}
  uint64_t bits() { return mix(key_ += 0x9e3779b97f4a7c15u); }
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  uint64_t key_;
};

uint64_t below(uint64_t bits, uint64_t count) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(bits) * count) >> 64);
}

}  // namespace

ClickTruth::ClickTruth(const ClickTruthOptions& options)
    : options_(options),
      space_(options.ids),
      probability_(normalized(zipf_weights(options))),
      ids_(zipf_weights(options)) {
  FLEET_CHECK(options.slots > 0 && options.longest > 0, "clicks without ids");
  make_weights();
  if (options_.interaction) make_factors();
  find_bias();
}

ClickShape ClickTruth::shape() const {
  return {.dense = options_.dense, .slots = options_.slots, .longest = options_.longest};
}

// The weights of a slot have the mean 0 and the same variance over rows as those of other slots, so
// that z has the wanted deviation exactly.
void ClickTruth::make_weights() {
  const double share = options_.interaction ? 0.5 : 1;
  const double variance = share * options_.deviation * options_.deviation /
                          static_cast<double>(options_.slots + options_.dense);
  const double mean_ids = static_cast<double>(options_.longest + 1) / 2;
  const auto count = static_cast<size_t>(options_.slot_ids);
  weights_.resize(static_cast<size_t>(options_.slots) * count);
  for (int64_t slot = 0; slot < options_.slots; ++slot) {
    Draws draws(sample_key(options_.seed, kTruthPart, slot));
    float* weights = weights_.data() + static_cast<size_t>(slot) * count;
    double mean = 0, square = 0;
    for (size_t i = 0; i < count; ++i) {
      weights[i] = static_cast<float>(draws.normal());
      mean += probability_[i] * double{weights[i]};
    }
    for (size_t i = 0; i < count; ++i) {
      weights[i] -= static_cast<float>(mean);
      square += probability_[i] * double{weights[i]} * double{weights[i]};
    }
    const double scale = square > 0 ? std::sqrt(variance / mean_ids / square) : 0;
    for (size_t i = 0; i < count; ++i) weights[i] *= static_cast<float>(scale);
  }
  Draws draws(sample_key(options_.seed, kTruthPart, -1));
  for (int64_t d = 0; d < options_.dense; ++d) {
    const double sign = draws.uniform() < 0.5 ? -1 : 1;
    dense_weights_.push_back(static_cast<float>(sign * std::sqrt(variance)));
  }
}

// Factors of a slot have the mean 0 over rows, so pairs are not correlated with weights, nor with
// other pairs. With the covariances C of the slots, the variance of <v_i, v_j> is trace(C_i C_j).
void ClickTruth::make_factors() {
  const auto count = static_cast<size_t>(options_.slot_ids);
  const double mean_ids = static_cast<double>(options_.longest + 1) / 2;
  factors_.resize(weights_.size() * kFactors);
  std::vector<std::array<double, kFactors * kFactors>> covariances;
  for (int64_t slot = 0; slot < options_.slots; ++slot) {
    Draws draws(sample_key(options_.seed, kTruthPart + 1, slot));
    float* factors = factors_.data() + static_cast<size_t>(slot) * count * kFactors;
    std::array<double, kFactors> mean{};
    auto& covariance = covariances.emplace_back();
    covariance.fill(0);
    for (size_t i = 0; i < count; ++i) {
      for (int64_t f = 0; f < kFactors; ++f) {
        factors[i * kFactors + f] = static_cast<float>(draws.normal());
        mean[f] += probability_[i] * double{factors[i * kFactors + f]};
      }
    }
    for (size_t i = 0; i < count; ++i) {
      float* v = factors + i * kFactors;
      for (int64_t f = 0; f < kFactors; ++f) v[f] -= static_cast<float>(mean[f]);
      for (int64_t c = 0; c < kFactors * kFactors; ++c) {
        covariance[c] +=
            probability_[i] * mean_ids * double{v[c / kFactors]} * double{v[c % kFactors]};
      }
    }
  }
  double variance = 0;
  for (size_t i = 0; i < covariances.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      for (size_t c = 0; c < covariances[i].size(); ++c) {
        variance += covariances[i][c] * covariances[j][c];
      }
    }
  }
  const double wanted = 0.5 * options_.deviation * options_.deviation;
  const double scale = variance > 0 ? std::pow(wanted / variance, 0.25) : 0;
  for (float& factor : factors_) factor *= static_cast<float>(scale);
}

// Bisection over a fixed set of rows.
void ClickTruth::find_bias() {
  std::vector<double> values(kBiasRows);
  for (int64_t i = 0; i < kBiasRows; ++i) {
    values[i] = draw(sample_key(options_.seed, kBiasPart, i), {});
  }
  double low = -60, high = 60;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    double sum = 0;
    for (const double z : values) sum += sigmoid(z + middle);
    (sum < options_.rate * static_cast<double>(kBiasRows) ? low : high) = middle;
  }
  bias_ = (low + high) / 2;
}

double ClickTruth::draw(uint64_t key, const ClickRow& row) const {
  Draws draws(key);
  double z = 0, squares = 0;
  std::array<double, kFactors> sums{};
  for (int64_t slot = 0; slot < options_.slots; ++slot) {
    const int64_t length = options_.longest == 1
                               ? 1
                               : 1 + static_cast<int64_t>(below(
                                         draws.bits(), static_cast<uint64_t>(options_.longest)));
    std::array<double, kFactors> own{};
    for (int64_t i = 0; i < options_.longest; ++i) {
      int64_t* to = row.ids ? row.ids + slot * options_.longest + i : nullptr;
      if (i >= length) {
        if (to) *to = -1;
        continue;
      }
      const int64_t id = ids_.draw(draws.bits()), at = slot * options_.slot_ids + id;
      z += double{weights_[at]};
      if (to) *to = space_.size() == 0 ? space_.hashed(slot, id) : at;
      if (factors_.empty()) continue;
      for (int64_t f = 0; f < kFactors; ++f) own[f] += double{factors_[at * kFactors + f]};
    }
    for (int64_t f = 0; f < kFactors; ++f) {
      sums[f] += own[f];
      squares += own[f] * own[f];
    }
  }
  // Rendle, "Factorization Machines", 2010: sum over pairs = (|sum v|^2 - sum |v|^2) / 2.
  for (const double sum : sums) z += 0.5 * sum * sum;
  z -= 0.5 * squares;
  for (int64_t d = 0; d < options_.dense; ++d) {
    const auto value = static_cast<float>(draws.normal());
    if (row.dense) row.dense[d] = value;
    z += double{dense_weights_[d]} * double{value};
  }
  return z;
}

double ClickTruth::fill(int64_t part, int64_t sample, const ClickRow& row) const {
  const uint64_t key = sample_key(options_.seed, part, sample);
  const double probability = sigmoid(bias_ + draw(key, row));
  // Another sequence than draw()'s.
  if (row.label) *row.label = Draws(~mix(key)).uniform() < probability ? 1.0f : 0.0f;
  return probability;
}

double best_possible_auc(std::span<const double> probabilities) {
  std::vector<double> sorted(probabilities.begin(), probabilities.end());
  std::sort(sorted.begin(), sorted.end());
  double negatives = 0, right = 0, clicks = 0, same = 0;
  for (size_t begin = 0; begin < sorted.size();) {
    size_t end = begin;
    double equal_clicks = 0, equal_negatives = 0, own = 0;
    for (; end < sorted.size() && sorted[end] == sorted[begin]; ++end) {
      equal_clicks += sorted[end];
      equal_negatives += 1 - sorted[end];
      own += sorted[end] * (1 - sorted[end]);  // a row and itself are not a pair
    }
    right += equal_clicks * negatives + 0.5 * (equal_clicks * equal_negatives - own);
    same += own;
    clicks += equal_clicks;
    negatives += equal_negatives;
    begin = end;
  }
  const double pairs = clicks * negatives - same;
  return pairs > 0 ? right / pairs : 0.5;
}

double best_possible_log_loss(std::span<const double> probabilities) {
  double sum = 0;
  for (const double p : probabilities) {
    if (p > 0 && p < 1) sum -= p * std::log(p) + (1 - p) * std::log(1 - p);
  }
  return probabilities.empty() ? 0 : sum / static_cast<double>(probabilities.size());
}

}  // namespace fleet::data
