// The choice of the next token from a model's logits.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace fleet::text {

struct SamplingOptions {
  double temperature = 1;  // divides the logits; 0: the likeliest token, always
  int64_t top_k = 0;       // only the k likeliest tokens, and ties of the k-th; 0: all tokens
  uint64_t seed = 0;       // the same seed, logits and options give the same tokens
};

// Samples as transformers does: temperature, then top-k, then softmax. Not thread-safe.
class Sampler {
 public:
  // kUsage if the temperature is negative or not finite, or if top_k is negative.
  explicit Sampler(const SamplingOptions& options);
  // An index of logits, which must not be empty. NaN has probability 0; of equal likeliest tokens,
  // temperature 0 takes the first.
  int64_t next(std::span<const float> logits);
  // The probability of each token after temperature and top-k; they sum to 1. For temperature 0,
  // one token has 1.
  std::vector<double> probabilities(std::span<const float> logits) const;

 private:
  const SamplingOptions options_;
  std::mt19937_64 random_;
};

}  // namespace fleet::text
