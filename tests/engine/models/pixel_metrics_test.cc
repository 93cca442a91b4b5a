#include "models/pixel_metrics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fleet {
namespace {

// scikit-learn's jaccard_score(average=None) of the labels 0, 1, 2 and torchvision's
// ConfusionMatrix of its references/segmentation; a class that never occurs is NaN there.
TEST(PixelMetrics, IntersectionOverUnion_IsThatOfTorchvision) {
  PixelMetrics metrics(4, {}, true);
  const std::vector<uint8_t> mask = {0, 0, 1, 1, 2, 255, 2, 0};
  const std::vector<int> predicted = {0, 1, 1, 1, 0, 3, 2, 0};
  std::vector<float> logits(4 * mask.size());
  for (size_t p = 0; p < mask.size(); ++p) logits[predicted[p] * mask.size() + p] = 1;
  const std::vector<float> weight = {1};
  metrics.add({.size = 1,
               .output = [&](const std::string&) { return std::span<const float>(logits); },
               .column =
                   [&](const std::string& name) {
                     return name == "mask" ? std::as_bytes(std::span(mask))
                                           : std::as_bytes(std::span(weight));
                   }});
  const std::vector<double> all = intersections_over_unions(metrics.pairs());
  EXPECT_DOUBLE_EQ(all[0], 2.0 / 4);
  EXPECT_DOUBLE_EQ(all[1], 2.0 / 3);
  EXPECT_DOUBLE_EQ(all[2], 1.0 / 2);
  EXPECT_TRUE(std::isnan(all[3]));
  EXPECT_DOUBLE_EQ(metrics.metrics().at("mIoU"), (0.5 + 2.0 / 3 + 0.5) / 3);
  EXPECT_EQ(metrics.samples(), (std::vector<int64_t>{3, 2, 2, 0}));
}

TEST(PixelMetrics, SamplesThatPadABatch_DoNotCount) {
  PixelMetrics metrics(2, {}, false);
  const std::vector<uint8_t> mask = {0, 1, 1, 1};
  const std::vector<float> logits = {1, 0, 0, 1, 1, 1, 0, 0}, weight = {1, 0};
  metrics.add({.size = 2,
               .output = [&](const std::string&) { return std::span<const float>(logits); },
               .column =
                   [&](const std::string& name) {
                     return name == "mask" ? std::as_bytes(std::span(mask))
                                           : std::as_bytes(std::span(weight));
                   }});
  EXPECT_EQ(metrics.metrics().at("mIoU"), 1);
}

// An image of 2 x 3 pixels with two wrong ones, one without, and one without labels.
TEST(PixelMetrics, WorstSamples_MarkWrongPixels) {
  PixelMetrics metrics(3, {"weighted_iou", "balanced_accuracy"}, true);
  const std::vector<uint8_t> mask = {0, 0, 1, 2,   255, 1,   0,   0,   0,
                                     0, 0, 0, 255, 255, 255, 255, 255, 255};
  const std::vector<int> predicted = {0, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1};
  std::vector<float> logits(3 * mask.size());
  for (size_t p = 0; p < mask.size(); ++p) logits[(p / 6 * 3 + predicted[p]) * 6 + p % 6] = 1;
  const std::vector<float> weight = {1, 1, 1};
  const std::vector<int64_t> samples = {7, 8, 9};
  metrics.add({.size = 3,
               .output = [&](const std::string&) { return std::span<const float>(logits); },
               .column =
                   [&](const std::string& name) {
                     return name == "mask" ? std::as_bytes(std::span(mask))
                                           : std::as_bytes(std::span(weight));
                   },
               .width = 3,
               .samples = samples});
  ASSERT_EQ(metrics.worst_samples().size(), 1u);
  const WorstSample worst = metrics.worst_samples()[0];
  EXPECT_EQ(worst.sample, 7);
  EXPECT_DOUBLE_EQ(worst.loss, 2.0 / 5);
  EXPECT_EQ(worst.expected, (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(worst.predicted, (std::vector<int64_t>{1}));
  EXPECT_EQ(worst.wrong.height, 2);
  EXPECT_EQ(worst.wrong.marked, (std::vector<uint8_t>{0, 1, 0, 1, 0, 0}));
  // scikit-learn's jaccard_score(average="weighted") and balanced_accuracy_score.
  EXPECT_NEAR(metrics.metrics().at("weighted_iou"), (8 * 7.0 / 8 + 2 * 2.0 / 4) / 11, 1e-12);
  EXPECT_NEAR(metrics.metrics().at("balanced_accuracy"), (7.0 / 8 + 1 + 0) / 3, 1e-12);
}

TEST(PixelMetrics, NothingLabelled_HasNoMean) {
  EXPECT_TRUE(std::isnan(PixelMetrics(2, {}, false).metrics().at("mIoU")));
}

TEST(PixelMetrics, EqualLogits_GiveTheFirstClass) {
  std::vector<uint8_t> classes(2);
  const float nan = std::nanf("");
  classes_of_pixels(std::vector<float>{1, nan, 1, 2, 0, 2}, 3, classes);
  EXPECT_EQ(classes, (std::vector<uint8_t>{0, 1}));
}

}  // namespace
}  // namespace fleet
