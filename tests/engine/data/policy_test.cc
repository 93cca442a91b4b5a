#include "data/policy.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>

#include "base/error.h"
#include "data/augment.h"
#include "tests/errors.h"

namespace fleet::data {
namespace {

using ::testing::HasSubstr;

constexpr ImageShape kImage{3, 32, 32};

// How often each operation was drawn, and the number of draws without any.
struct Draws {
  std::map<Operation, int> counts;
  int empty = 0, steps = 0;
};

Draws draws_of(const std::string& policy, int count) {
  const auto made = make_policy(policy);
  Draws draws;
  for (int i = 0; i < count; ++i) {
    RandomStream random(sample_key(7, 0, i), "test");
    const PolicyDraw draw = made->draw(kImage, random);
    bool empty = true;
    for (const PolicyDraw::Chain& chain : draw.chains) {
      for (const ImageStep& step : chain.steps) {
        ++draws.counts[step.operation];
        ++draws.steps;
        empty = false;
      }
    }
    draws.empty += empty;
  }
  return draws;
}

// Pearson's statistic of counts that should be equal.
double chi_square(const Draws& draws) {
  const double expected =
      static_cast<double>(draws.steps) / static_cast<double>(draws.counts.size());
  double sum = 0;
  for (const auto& [operation, count] : draws.counts) {
    sum += (count - expected) * (count - expected) / expected;
  }
  return sum;
}

TEST(Policy, TrivialAugment_DrawsOneOfFourteenOperationsEvenly) {
  for (const char* name : {"TrivialAugmentWide", "ta_wide"}) {
    const Draws draws = draws_of(name, 20000);
    EXPECT_EQ(draws.steps, 20000);
    EXPECT_EQ(draws.counts.size(), 14u);
    EXPECT_LT(chi_square(draws), 27.7);  // 1 % of right draws exceed it, at 13 degrees of freedom
  }
}

TEST(Policy, TimmsRand_AppliesTwoOfFifteenOperationsToHalfOfTheImagesEach) {
  const Draws draws = draws_of("rand-m9-mstd0.5-inc1", 20000);
  EXPECT_EQ(draws.counts.size(), 15u);
  EXPECT_LT(chi_square(draws), 29.2);
  EXPECT_NEAR(draws.steps, 20000, 400);
  EXPECT_NEAR(draws.empty, 5000, 250);
  EXPECT_EQ(draws_of("rand-n3-p1", 1000).steps, 3000);
}

TEST(Policy, TimmsWeights_ChooseOperationsWithoutRepeats) {
  const auto made = make_policy("rand-m9-n15-p1-tweights-inc1");
  RandomStream random(1, "test");
  const PolicyDraw draw = made->draw(kImage, random);
  std::map<Operation, int> counts;
  for (const ImageStep& step : draw.chains.at(0).steps) ++counts[step.operation];
  EXPECT_EQ(counts.size(), 15u);
  const Draws single = draws_of("rand-m9-n1-p1-tweights", 20000);
  EXPECT_NEAR(single.counts.at(Operation::kRotate), 20000 * 3 / 10.05, 300);
  EXPECT_NEAR(single.counts.at(Operation::kColour), 20000 * 0.25 / 10.05, 90);
}

TEST(Policy, AutoAugment_AppliesPairsWithTheirProbabilities) {
  // The mean of all probabilities of the 25 pairs.
  const Draws imagenet = draws_of("AutoAugment", 20000);
  EXPECT_EQ(imagenet.counts.size(), 10u);
  EXPECT_NEAR(imagenet.steps / 20000.0, 1.24, 0.02);
  EXPECT_EQ(draws_of("imagenet", 20000).counts, imagenet.counts);
  EXPECT_TRUE(draws_of("cifar10", 5000).counts.contains(Operation::kTranslateY));
  EXPECT_GT(draws_of("svhn", 5000).counts.at(Operation::kInvert), 1000);
  EXPECT_TRUE(draws_of("v0", 5000).counts.contains(Operation::kSolarizeAdd));
  EXPECT_TRUE(draws_of("original-mstd0.5", 5000).counts.contains(Operation::kPosterize));
}

TEST(Policy, ThreeAugment_IsGreySolarizedOrBlurred) {
  const Draws draws = draws_of("3a", 9000);
  EXPECT_EQ(draws.steps, 9000);
  EXPECT_EQ(draws.counts.size(), 3u);
  EXPECT_LT(chi_square(draws), 9.2);
  const auto made = make_policy("3a");
  for (int i = 0; i < 100; ++i) {
    RandomStream random(i, "test");
    const ImageStep step = made->draw(kImage, random).chains.at(0).steps.at(0);
    if (step.operation == Operation::kColour) {
      EXPECT_EQ(step.value, 0);
    }
    if (step.operation == Operation::kSolarize) {
      EXPECT_NEAR(step.value, 0.5, 1e-9);
    }
    if (step.operation == Operation::kBlur) {
      EXPECT_THAT(step.value, ::testing::AllOf(::testing::Ge(0.1), ::testing::Le(2)));
    }
  }
}

TEST(Policy, AugMix_MixesThreeVersionsWithTheImage) {
  for (const char* name : {"AugMix", "augmix-m5-w3"}) {
    const auto made = make_policy(name);
    double own = 0;
    int steps = 0;
    for (int i = 0; i < 3000; ++i) {
      RandomStream random(i, "test");
      const PolicyDraw draw = made->draw(kImage, random);
      ASSERT_EQ(draw.chains.size(), 3u);
      double sum = draw.own;
      for (const PolicyDraw::Chain& chain : draw.chains) {
        sum += chain.weight;
        steps += static_cast<int>(chain.steps.size());
        EXPECT_LE(chain.steps.size(), 3u);
      }
      EXPECT_NEAR(sum, 1, 1e-5);
      own += draw.own;
    }
    EXPECT_NEAR(own / 3000, 0.5, 0.02) << name;  // Beta(1, 1)
    EXPECT_NEAR(steps / 3000.0, 6, 0.4) << name;
  }
  EXPECT_EQ(draws_of("augmix-w2-d2", 100).steps, 400);
}

TEST(Policy, MixedVersions_AreAddedByTheirWeights) {
  std::vector<float> pixels = {0.2f, 0.4f, 0.9f, 0.5f};
  const ImagePlanes planes{
      .pixels = pixels.data(), .image = {1, 2, 2}, .mean = {}, .deviation = {}};
  apply({.own = 0.5f,
         .chains = {{.weight = 0.25f, .steps = {{Operation::kInvert}}},
                    {.weight = 0.25f, .steps = {{Operation::kBrightness, 0}}}}},
        planes);
  EXPECT_THAT(pixels,
              ::testing::Pointwise(::testing::FloatNear(1e-6f),
                                   {0.1f + 0.2f, 0.2f + 0.15f, 0.45f + 0.025f, 0.25f + 0.125f}));
}

TEST(Policy, UnknownNamesAndSections_AreRefused) {
  const std::map<std::string, std::string> wrong = {{"TrivialAugment", "TrivialAugmentWide"},
                                                    {"rand-m9-x2", "known: m, n, p"},
                                                    {"rand-m", "m' with a number"},
                                                    {"rand-p1.5", "from 0 to 1"},
                                                    {"rand-n1.5", "not a whole number"},
                                                    {"rand-twords", "t3aw"},
                                                    {"rand-n16-tweights", "applied once"},
                                                    {"augmix-z1", "known: m, w, d"},
                                                    {"3a-m5", "known: mstd"},
                                                    {"AutoAugment-m9", "this policy has none"},
                                                    {"", "known: "}};
  for (const auto& [text, part] : wrong) {
    const Error error = thrown_by([&] { make_policy(text); });
    EXPECT_THAT(error, IsUsageError("data.augment.policy")) << text;
    EXPECT_THAT(error.what(), HasSubstr(part)) << text;
  }
}

}  // namespace
}  // namespace fleet::data
