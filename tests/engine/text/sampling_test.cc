#include "text/sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace fleet::text {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

// Logits whose softmax is 0.5, 0.25, 0.125, 0.125.
const std::vector<float> kLogits = {std::log(4.0f), std::log(2.0f), 0, 0};

TEST(Sampler, Plain_IsTheSoftmax) {
  EXPECT_THAT(Sampler({}).probabilities(kLogits),
              ElementsAre(DoubleNear(0.5, 1e-7), DoubleNear(0.25, 1e-7), DoubleNear(0.125, 1e-7),
                          DoubleNear(0.125, 1e-7)));
}

TEST(Sampler, Temperature_DividesTheLogits) {
  const auto half = Sampler({.temperature = 0.5}).probabilities(kLogits);
  EXPECT_NEAR(half[0], 16.0 / 22, 1e-7);
  EXPECT_NEAR(half[3], 1.0 / 22, 1e-7);
}

// As in transformers.
TEST(Sampler, TopK_KeepsTiesOfTheLast) {
  EXPECT_THAT(Sampler({.top_k = 2}).probabilities(kLogits),
              ElementsAre(DoubleNear(2.0 / 3, 1e-7), DoubleNear(1.0 / 3, 1e-7), 0, 0));
  EXPECT_NEAR(Sampler({.top_k = 3}).probabilities(kLogits)[3], 0.125, 1e-7);
}

TEST(Sampler, TemperatureZero_TakesTheFirstOfTheLikeliest) {
  const std::vector<float> logits = {NAN, 1, 3, 3};
  Sampler sampler({.temperature = 0});
  EXPECT_EQ(sampler.next(logits), 2);
  EXPECT_THAT(sampler.probabilities(logits), ElementsAre(0, 0, 1, 0));
}

TEST(Sampler, Draws_FollowTheProbabilities) {
  Sampler sampler({.seed = 7});
  std::vector<int> counts(4);
  constexpr int kDraws = 20'000;
  for (int i = 0; i < kDraws; ++i) ++counts[static_cast<size_t>(sampler.next(kLogits))];
  const double expected[] = {0.5, 0.25, 0.125, 0.125};
  for (size_t i = 0; i < 4; ++i) {
    // Five standard deviations.
    const double p = expected[i];
    EXPECT_NEAR(counts[i], p * kDraws, 5 * std::sqrt(p * (1 - p) * kDraws)) << i;
  }
}

TEST(Sampler, SameSeed_SameTokens) {
  Sampler a({.seed = 3}), b({.seed = 3}), other({.seed = 4});
  std::vector<int64_t> first, again, different;
  for (int i = 0; i < 64; ++i) {
    first.push_back(a.next(kLogits));
    again.push_back(b.next(kLogits));
    different.push_back(other.next(kLogits));
  }
  EXPECT_EQ(first, again);
  EXPECT_NE(first, different);
}

TEST(Sampler, LogitsWithoutADistribution_GiveAToken) {
  const std::vector<float> logits = {NAN, -INFINITY, NAN};
  const int64_t token = Sampler({}).next(logits);
  EXPECT_GE(token, 0);
  EXPECT_LT(token, 3);
}

TEST(Sampler, WrongOptions_AreRefused) {
  EXPECT_THROW(Sampler({.temperature = -1}), Error);
  EXPECT_THROW(Sampler({.temperature = NAN}), Error);
  EXPECT_THROW(Sampler({.top_k = -1}), Error);
}

}  // namespace
}  // namespace fleet::text
