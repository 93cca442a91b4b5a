#include <gtest/gtest.h>

#include "passes/gradients.h"

namespace fleet {
namespace {

constexpr size_t kMega = 1 << 20;
using Buckets = std::vector<std::vector<int>>;

TEST(GroupGradients, Layers_AreMergedUntilTheSizeIsReached) {
  const std::vector<GradientSize> gradients = {
      {"c.weight", 3 * kMega}, {"c.bias", 1}, {"b.weight", 2 * kMega}, {"a.weight", kMega}};
  EXPECT_EQ(group_gradients(gradients, {.megabytes = 4}), (Buckets{{0, 1, 2}, {3}}));
  EXPECT_EQ(group_gradients(gradients, {.megabytes = 3}), (Buckets{{0, 1}, {2, 3}}));
  EXPECT_EQ(group_gradients(gradients, {.megabytes = 100}), (Buckets{{0, 1, 2, 3}}));
}

TEST(GroupGradients, SizeOfNothing_IsABucketALayer) {
  const std::vector<GradientSize> gradients = {{"c.weight", 8}, {"c.bias", 8}, {"b.weight", 8}};
  EXPECT_EQ(group_gradients(gradients, {.megabytes = 0}), (Buckets{{0, 1}, {2}}));
}

TEST(GroupGradients, Count_ClosesABucketOnceItIsPassed) {
  std::vector<GradientSize> gradients;
  for (int i = 0; i < 7; ++i) gradients.push_back({std::to_string(i) + ".weight", 4});
  EXPECT_EQ(group_gradients(gradients, {.count = 2}), (Buckets{{0, 1, 2}, {3, 4, 5}, {6}}));
  EXPECT_EQ(group_gradients(gradients, {.count = 1}).size(), 1u);  // no limit
}

TEST(GroupGradients, ExactCount_GoesByNumberAlone) {
  std::vector<GradientSize> gradients;
  for (int i = 0; i < 5; ++i) gradients.push_back({"a." + std::to_string(i), 100 * kMega});
  EXPECT_EQ(group_gradients(gradients, {.exact_count = 2}), (Buckets{{0, 1}, {2, 3}, {4}}));
}

TEST(GroupGradients, LastMegabytes_AreABucketOfTheirOwn) {
  const std::vector<GradientSize> gradients = {{"d.weight", 3 * kMega},
                                               {"c.weight", 2 * kMega},
                                               {"b.weight", kMega / 2},
                                               {"b.bias", kMega / 4},
                                               {"a.weight", kMega / 2}};
  const auto last = [&](double megabytes) {
    return group_gradients(gradients, {.megabytes = 100, .last_megabytes = megabytes});
  };
  EXPECT_EQ(last(0.5), (Buckets{{0, 1, 2, 3}, {4}}));
  EXPECT_EQ(last(1), (Buckets{{0, 1}, {2, 3, 4}}));  // whole layers
  EXPECT_EQ(last(3), (Buckets{{0}, {1, 2, 3, 4}}));
  EXPECT_EQ(last(100), (Buckets{{0, 1, 2, 3, 4}}));
  EXPECT_EQ(group_gradients(gradients, {.megabytes = 1, .last_megabytes = 1}),
            (Buckets{{0}, {1}, {2, 3, 4}}));
}

TEST(GroupGradients, MixedTypes_AreSplit) {
  const std::vector<GradientSize> gradients = {{"c.weight", 8, DType::kFloat16},
                                               {"c.bias", 8, DType::kFloat32},
                                               {"b.weight", 8, DType::kFloat16}};
  EXPECT_EQ(group_gradients(gradients, {}), (Buckets{{1}, {0, 2}}));  // in order of their ends
}

TEST(GroupGradients, LayerComputedInTwoParts_StaysWhole) {
  const std::vector<GradientSize> gradients = {
      {"a.weight", 8}, {"b.weight", 8}, {"a.bias", 8}, {"c.weight", 8}};
  EXPECT_EQ(group_gradients(gradients, {.megabytes = 1e-9}), (Buckets{{1}, {0, 2}, {3}}));
}

TEST(GroupGradients, NameWithoutADot_IsALayerOfItsOwn) {
  const std::vector<GradientSize> gradients = {{"scale", 8}, {"shift", 8}};
  EXPECT_EQ(group_gradients(gradients, {.megabytes = 0}), (Buckets{{0}, {1}}));
}

TEST(GroupGradients, NoGradients_NoBuckets) { EXPECT_TRUE(group_gradients({}, {}).empty()); }

}  // namespace
}  // namespace fleet
