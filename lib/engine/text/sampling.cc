#include "text/sampling.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.h"

namespace fleet::text {
namespace {

double logit_or_least(float logit) { return std::isnan(logit) ? -INFINITY : logit; }

size_t likeliest(std::span<const float> logits) {
  size_t best = 0;
  for (size_t i = 1; i < logits.size(); ++i) {
    if (logit_or_least(logits[i]) > logit_or_least(logits[best])) best = i;
  }
  return best;
}

// The k-th largest logit; the smallest if there are no more than k.
double threshold(std::span<const float> logits, int64_t k) {
  std::vector<double> sorted(logits.size());
  std::transform(logits.begin(), logits.end(), sorted.begin(), logit_or_least);
  if (k <= 0 || k >= std::ssize(sorted)) return -INFINITY;
  const auto kth = sorted.begin() + (k - 1);
  std::nth_element(sorted.begin(), kth, sorted.end(), std::greater<>());
  return *kth;
}

}  // namespace

Sampler::Sampler(const SamplingOptions& options) : options_(options), random_(options.seed) {
  if (!(options.temperature >= 0) || std::isinf(options.temperature)) {
    throw Error(ErrorCode::kUsage, "the temperature must be a number from 0 on", "--temperature",
                "use 0 for the likeliest token, 1 for the model's own distribution");
  }
  if (options.top_k < 0) {
    throw Error(ErrorCode::kUsage, "a negative number of tokens", "--top_k", "0 means all tokens");
  }
}

std::vector<double> Sampler::probabilities(std::span<const float> logits) const {
  std::vector<double> result(logits.size());
  const size_t best = likeliest(logits);
  // Also where every logit is infinite or NaN: a distribution does not exist.
  if (options_.temperature == 0 || !std::isfinite(logits[best])) {
    result[best] = 1;
    return result;
  }
  const double least = threshold(logits, options_.top_k);
  double sum = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double logit = logit_or_least(logits[i]);
    if (logit < least) continue;
    result[i] = std::exp((logit - static_cast<double>(logits[best])) / options_.temperature);
    sum += result[i];
  }
  for (double& probability : result) probability /= sum;
  return result;
}

int64_t Sampler::next(std::span<const float> logits) {
  if (options_.temperature == 0) return static_cast<int64_t>(likeliest(logits));
  const std::vector<double> all = probabilities(logits);
  // Not std::uniform_real_distribution, whose values depend on the library.
  double left = static_cast<double>(random_() >> 11) * 0x1p-53;
  size_t last = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] == 0) continue;
    if (left < all[i]) return static_cast<int64_t>(i);
    left -= all[i];
    last = i;
  }
  return static_cast<int64_t>(last);  // rounding: the sum was just below 1
}

}  // namespace fleet::text
