#include "data/augment.h"

#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "base/error.h"
#include "tests/engine/data/helpers.h"
#include "tests/errors.h"

namespace fleet::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

AugmentChain chain_of(const std::string& json, const ImageShape& image, bool train = true) {
  ConfigTree tree = ConfigTree::from_json(json, "job.json");
  return AugmentChain(tree.validate(augment_schema(train)), train, image, {0}, {1});
}

CropGeometry set_geometry(const AugmentChain& chain, int height, int width, uint64_t key = 1) {
  return chain.set_geometry(height, width, key, [] { return std::string("image.jpg"); });
}

TEST(RandomResizedCrop, Boxes_LieWithinImageScaleAndRatio) {
  const auto chain = chain_of(R"({"random_resized_crop": true})", {3, 32, 32});
  double area = 0;
  const int count = 4000;
  for (int i = 0; i < count; ++i) {
    const CropGeometry p = set_geometry(chain, 300, 400, sample_key(1, 2, i));
    EXPECT_GE(p.x, 0);
    EXPECT_GE(p.y, 0);
    EXPECT_LE(p.x + p.width, 400);
    EXPECT_LE(p.y + p.height, 300);
    const double share = p.width * p.height / (300.0 * 400), ratio = p.width / p.height;
    EXPECT_GT(share, 0.078);
    EXPECT_LE(share, 1.0);
    EXPECT_GT(ratio, 0.73);
    EXPECT_LT(ratio, 1.37);
    EXPECT_EQ(p.tap_x, p.x);
    EXPECT_EQ(p.tap_width, p.width);
    area += share;
  }
  // Uniform in area from 0.08 to 1, less large boxes that do not fit; torchvision's algorithm gives
  // this mean for a 300x400 image.
  EXPECT_NEAR(area / count, 0.430, 0.015);
}

TEST(RandomResizedCrop, NoBoxFits_TakesTheCentre) {
  const auto chain = chain_of(
      R"({"random_resized_crop": true, "random_resized_crop_scale": [1, 1]})", {3, 32, 32});
  const CropGeometry p = set_geometry(chain, 100, 1000);
  EXPECT_EQ(p.height, 100);
  EXPECT_EQ(p.width, 133);
  EXPECT_EQ(p.x, (1000 - 133) / 2);
}

TEST(RandomResizedCrop, BadRange_IsRefused) {
  EXPECT_THAT(thrown_by([] {
                chain_of(
                    R"({"random_resized_crop": true, "random_resized_crop_scale": [0.5, 0.1]})",
                    {3, 8, 8});
              }),
              IsUsageError("data.augment.random_resized_crop_scale"));
}

TEST(RandomCrop, Padding_ReachesEveryOffset) {
  const auto chain = chain_of(R"({"random_crop_padding": 2})", {3, 8, 8});
  std::set<std::pair<double, double>> offsets;
  for (int i = 0; i < 2000; ++i) {
    const CropGeometry p = set_geometry(chain, 8, 8, i);
    EXPECT_EQ(p.width, 8);
    offsets.emplace(p.x, p.y);
  }
  EXPECT_EQ(offsets.size(), 25u);
  EXPECT_EQ(*offsets.begin(), std::make_pair(-2.0, -2.0));
  EXPECT_EQ(*offsets.rbegin(), std::make_pair(2.0, 2.0));
  EXPECT_THAT(thrown_by([&] { set_geometry(chain, 3, 8); }), IsUsageError("image.jpg"));
}

TEST(Flip, HalfOfTheImages_AreMirrored) {
  const auto chain = chain_of(R"({"flip": true})", {1, 4, 4});
  int flipped = 0;
  for (int i = 0; i < 4000; ++i) flipped += set_geometry(chain, 4, 4, mix(i)).flip;
  EXPECT_NEAR(flipped, 2000, 150);
}

TEST(Resize, ShorterSideThenCentre) {
  const auto chain = chain_of(R"({"resize": 256})", {3, 224, 224}, false);
  // 300 x 400 becomes 256 x 341, whose centre starts at (16, 58).
  const CropGeometry p = set_geometry(chain, 300, 400);
  EXPECT_DOUBLE_EQ(p.y, 16 * 300.0 / 256);
  EXPECT_DOUBLE_EQ(p.x, 58 * 400.0 / 341);
  EXPECT_DOUBLE_EQ(p.height, 224 * 300.0 / 256);
  EXPECT_DOUBLE_EQ(p.width, 224 * 400.0 / 341);
  EXPECT_EQ(p.tap_width, 400);
  EXPECT_THAT(thrown_by([] {
                chain_of(R"({"resize": 200})", {3, 224, 224}, false);
              }),
              IsUsageError("job.json"));
}

TEST(AugmentChain, TwoThatPlace_AreRefused) {
  EXPECT_THAT(thrown_by([] {
                chain_of(R"({"random_crop_padding": 2, "random_resized_crop": true})", {3, 8, 8});
              }),
              IsUsageError("data.augment"));
}

TEST(AugmentChain, OneMore_LeavesTheOthersDrawsAlone) {
  const auto alone = chain_of(R"({"random_resized_crop": true})", {3, 32, 32});
  const auto both = chain_of(R"({"random_resized_crop": true, "flip": true})", {3, 32, 32});
  for (uint64_t key = 0; key < 50; ++key) {
    const CropGeometry a = set_geometry(alone, 90, 80, key), b = set_geometry(both, 90, 80, key);
    EXPECT_EQ(a.x, b.x);
    EXPECT_EQ(a.width, b.width);
  }
}

TEST(AugmentChain, MeanAndStd_NormaliseEachChannel) {
  const Settings none = ConfigTree().validate(augment_schema(true));
  const AugmentChain chain(none, true, {3, 2, 2}, {0.5, 0.25, 0}, {0.5, 0.25, 1});
  EXPECT_NEAR(255 * chain.scale()[0] + chain.bias()[0], 1, 1e-6);
  EXPECT_NEAR(0 * chain.scale()[1] + chain.bias()[1], -1, 1e-6);
  EXPECT_NEAR(127.5 * chain.scale()[2] + chain.bias()[2], 0.5, 1e-6);
  EXPECT_THAT(thrown_by([&] {
                AugmentChain(none, true, {3, 2, 2}, {0, 0}, {1});
              }),
              IsUsageError("data.mean"));
  EXPECT_THAT(thrown_by([&] {
                AugmentChain(none, true, {3, 2, 2}, {0}, {0});
              }),
              IsUsageError("data.std"));
}

// The numbers of Caffe's and Paddle's files, whose pixels go up to 255.
TEST(AugmentChain, MeanOrStdOnAnotherScale_IsRefusedWithTheRightValues) {
  const Settings none = ConfigTree().validate(augment_schema(true));
  const std::vector<double> mean{0.485, 0.456, 0.406}, std{0.229, 0.224, 0.225};
  const std::vector<double> large_mean{123.675, 116.28, 103.53}, large_std{58.395, 57.12, 57.375};
  const auto refusal = [&](const std::vector<double>& m, const std::vector<double>& s) {
    return thrown_by([&] { AugmentChain(none, true, {3, 2, 2}, m, s); });
  };
  const std::string right_mean = "data.mean=[0.485, 0.456, 0.406]";
  const std::string right_std = "data.std=[0.229, 0.224, 0.225]";
  EXPECT_THAT(refusal(large_mean, std),
              AllOf(IsUsageError("data.mean"), Advises(HasSubstr(right_mean))));
  EXPECT_THAT(refusal(mean, large_std),
              AllOf(IsUsageError("data.std"), Advises(HasSubstr(right_std))));
  EXPECT_THAT(refusal(large_mean, large_std),
              AllOf(IsUsageError("data.mean"),
                    Advises(AllOf(HasSubstr(right_mean), HasSubstr(right_std)))));
  EXPECT_THAT(refusal({0, 127.5, 0}, {1}), Advises(HasSubstr("[0, 0.5, 0]")));
  AugmentChain(none, true, {3, 2, 2}, {1}, {1});  // the ends of the scale
}

std::vector<float> jittered(const std::string& what, std::vector<float> pixels, uint64_t key) {
  const int count = static_cast<int>(pixels.size()) / 3;
  const auto chain = chain_of("{\"color_jitter\": {" + what + "}}", {3, 1, count});
  EXPECT_TRUE(chain.colours());
  chain.colour(pixels.data(), key);
  return pixels;
}

TEST(ColorJitter, Brightness_IsOneFactorForAll) {
  std::set<float> factors;
  for (uint64_t key = 0; key < 100; ++key) {
    const auto got = jittered(R"("brightness": 0.4)", {0.2f, 0.4f, 0.1f, 0.3f, 0.5f, 0.6f}, key);
    const float factor = got[0] / 0.2f;
    EXPECT_GE(factor, 0.599f);
    EXPECT_LE(factor, 1.401f);
    EXPECT_NEAR(got[1], 0.4f * factor, 1e-5);
    EXPECT_NEAR(got[5], 0.6f * factor, 1e-5);
    factors.insert(factor);
  }
  EXPECT_GT(factors.size(), 90u);
}

// torchvision's weights of the colours add up to 0.9999.
TEST(ColorJitter, ContrastAndSaturation_KeepGreyMeans) {
  const auto grey = [](const std::vector<float>& p, int i, int n) {
    return 0.2989f * p[i] + 0.587f * p[n + i] + 0.114f * p[2 * n + i];
  };
  const std::vector<float> pixels{0.4f, 0.5f, 0.45f, 0.55f, 0.5f, 0.4f};
  for (uint64_t key = 0; key < 20; ++key) {
    const auto contrasted = jittered(R"("contrast": 0.5)", pixels, key);
    EXPECT_NEAR(grey(contrasted, 0, 2) + grey(contrasted, 1, 2),
                grey(pixels, 0, 2) + grey(pixels, 1, 2), 1e-4);
    const auto saturated = jittered(R"("saturation": 0.5)", pixels, key);
    EXPECT_NEAR(grey(saturated, 0, 2), grey(pixels, 0, 2), 1e-4);
    EXPECT_NEAR(grey(saturated, 1, 2), grey(pixels, 1, 2), 1e-4);
  }
}

TEST(ColorJitter, Hue_KeepsValueAndRangeAndTurnsBothWays) {
  const std::vector<float> red{0.9f, 0.2f, 0.3f};
  bool to_green = false, to_blue = false;
  for (uint64_t key = 0; key < 50; ++key) {
    const auto got = jittered(R"("hue": 0.3)", red, key);
    EXPECT_NEAR(*std::max_element(got.begin(), got.end()), 0.9f, 1e-5);
    EXPECT_NEAR(*std::min_element(got.begin(), got.end()), 0.2f, 1e-5);
    to_green |= got[1] > got[2] + 0.1f;
    to_blue |= got[2] > got[1] + 0.2f;
  }
  EXPECT_TRUE(to_green);
  EXPECT_TRUE(to_blue);
  EXPECT_THAT(thrown_by([] {
                chain_of(R"({"color_jitter": {"hue": 0.1}})", {1, 4, 4});
              }),
              IsUsageError("data.augment.color_jitter"));
}

// The mean where it was erased, as 0 after normalisation.
TEST(RandomErasing, Box_HasTheMeanAndTheDrawnArea) {
  const ImageShape image{3, 40, 50};
  const auto settings = [](const std::string& json) {
    return ConfigTree::from_json(json, "job.json").validate(augment_schema(true));
  };
  const AugmentChain chain(settings(R"({"random_erasing": {"probability": 0.5}})"), true, image,
                           {0.25, 0.5, 0.75}, {1});
  int erased = 0;
  double area = 0;
  for (uint64_t key = 0; key < 1000; ++key) {
    std::vector<float> pixels(image.count(), 2.0f);
    chain.colour(pixels.data(), mix(key));
    const auto count = std::count(pixels.begin(), pixels.begin() + 2000, 0.25f);
    EXPECT_EQ(count, std::count(pixels.begin() + 2000, pixels.begin() + 4000, 0.5f));
    EXPECT_EQ(count, std::count(pixels.begin() + 4000, pixels.end(), 0.75f));
    EXPECT_EQ(3 * count + std::count(pixels.begin(), pixels.end(), 2.0f), 6000);
    erased += count > 0;
    area += static_cast<double>(count) / 2000;
    EXPECT_LE(count, 0.36 * 2000);
  }
  EXPECT_NEAR(erased, 500, 60);
  EXPECT_NEAR(area / erased, 0.17, 0.02);  // uniform from 0.02 to 0.33, few boxes do not fit
}

TEST(RandomErasing, Noise_HasMeanAndDeviationOfTheData) {
  const ImageShape image{1, 60, 60};
  const AugmentChain chain(
      ConfigTree::from_json(
          R"({"random_erasing": {"probability": 1, "fill": "noise", "scale": [0.5, 0.5]}})",
          "job.json")
          .validate(augment_schema(true)),
      true, image, {0.4}, {0.2});
  std::vector<float> pixels(image.count(), 9.0f);
  chain.colour(pixels.data(), 3);
  double sum = 0, squares = 0, count = 0;
  for (const float value : pixels) {
    if (value == 9.0f) continue;
    sum += value, squares += value * value, ++count;
  }
  EXPECT_NEAR(count, 1800, 80);
  EXPECT_NEAR(sum / count, 0.4, 0.02);
  EXPECT_NEAR(std::sqrt(squares / count - 0.16), 0.2, 0.02);
  EXPECT_THAT(thrown_by([] {
                chain_of(R"({"random_erasing": {"probability": 1, "scale": [0.5, 2]}})", {1, 4, 4});
              }),
              IsUsageError("data.augment.random_erasing.scale"));
}

TEST(RandAugment, MagnitudeBeyondItsBins_IsRefused) {
  EXPECT_THAT(thrown_by([] {
                chain_of(R"({"rand_augment": {"operations": 2, "magnitude": 31}})", {3, 8, 8});
              }),
              IsUsageError("data.augment.rand_augment.magnitude"));
}

TEST(Policy, BesideRandAugment_IsRefused) {
  EXPECT_THAT(thrown_by([] {
                chain_of(R"({"policy": "3a", "rand_augment": {"operations": 2}})", {3, 32, 32});
              }),
              IsUsageError("data.augment"));
}

// Pixels of an image whose values are their own numbers, after the chain.
std::vector<float> coloured(const std::string& json, const ImageShape& image, uint64_t key) {
  std::vector<float> pixels(image.count());
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i) / 100;
  chain_of(json, image).colour(pixels.data(), key);
  return pixels;
}

TEST(VerticalFlip, Rows_AreReversed) {
  const auto rows = coloured(R"({"vertical_flip": {"probability": 1}})", {1, 3, 2}, 1);
  EXPECT_THAT(
      rows, ::testing::Pointwise(::testing::FloatEq(), {0.04f, 0.05f, 0.02f, 0.03f, 0.0f, 0.01f}));
  int flipped = 0;
  for (int i = 0; i < 1000; ++i) {
    flipped += coloured(R"({"vertical_flip": {"probability": 0.3}})", {1, 2, 1}, mix(i))[0] > 0;
  }
  EXPECT_NEAR(flipped, 300, 45);
}

TEST(RandomGrayscale, Channels_BecomeEqual) {
  const ImageShape image{3, 2, 2};
  const auto pixels = coloured(R"({"random_grayscale": {"probability": 1}})", image, 1);
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(pixels[i], 0.01 * i + 0.04 * 0.587 + 0.08 * 0.114, 1e-4);
    EXPECT_EQ(pixels[i], pixels[4 + i]);
    EXPECT_EQ(pixels[i], pixels[8 + i]);
  }
}

TEST(GaussianBlur, WidthThatCannotBe_IsRefused) {
  for (const char* size : {"4", "65"}) {
    EXPECT_THAT(thrown_by([&] {
                  chain_of(std::string(R"({"gaussian_blur": {"probability": 1, "kernel_size": )") +
                               size + "}}",
                           {3, 32, 48});
                }),
                IsUsageError("data.augment.gaussian_blur.kernel_size"));
  }
  const auto pixels =
      coloured(R"({"gaussian_blur": {"probability": 1, "kernel_size": 3}})", {1, 8, 8}, 1);
  EXPECT_NEAR(pixels[27], 0.27, 1e-5) << "a slope stays a slope within the image";
}

TEST(RandomAffine, Nothing_IsNoAugmentationAndShiftsAreWholePixels) {
  EXPECT_FALSE(chain_of("{}", {1, 4, 4}).colours());
  std::set<float> corners;
  for (int i = 0; i < 200; ++i) {
    const auto pixels =
        coloured(R"({"random_affine": {"translate": [0.25, 0]}})", {1, 4, 4}, mix(i));
    corners.insert(pixels[5]);
  }
  EXPECT_THAT(corners, ::testing::ElementsAre(0.04f, 0.05f, 0.06f));
  EXPECT_THAT(thrown_by([] {
                chain_of(R"({"random_affine": {"translate": [2, 0]}})", {1, 4, 4});
              }),
              IsUsageError("data.augment.random_affine.translate"));
}

TEST(Mixup, Shares_HaveTheMeanAndVarianceOfBeta) {
  for (const double alpha : {0.2, 1.0, 4.0}) {
    const auto chain = chain_of(R"({"mixup_alpha": )" + std::to_string(alpha) + "}", {3, 4, 4});
    ASSERT_TRUE(chain.mixes());
    double sum = 0, squares = 0;
    const int count = 20000;
    for (int i = 0; i < count; ++i) {
      const BatchMix mixed = chain.mix(mix(i));
      EXPECT_FALSE(mixed.cuts);
      sum += mixed.own, squares += mixed.own * mixed.own;
    }
    EXPECT_NEAR(sum / count, 0.5, 0.01);
    // Of Beta(a, a): 1 / (4 (2a + 1)).
    EXPECT_NEAR(squares / count - 0.25, 1 / (4 * (2 * alpha + 1)), 0.012) << alpha;
  }
}

TEST(Cutmix, Box_LiesWithinTheImageAndSharesItsArea) {
  const auto chain = chain_of(R"({"cutmix_alpha": 1})", {3, 30, 40});
  double own = 0;
  const int count = 5000;
  for (int i = 0; i < count; ++i) {
    const BatchMix mixed = chain.mix(mix(i));
    EXPECT_TRUE(mixed.cuts);
    EXPECT_GE(mixed.left, 0);
    EXPECT_LE(mixed.left, mixed.right);
    EXPECT_LE(mixed.right, 40);
    EXPECT_GE(mixed.top, 0);
    EXPECT_LE(mixed.bottom, 30);
    const double area = double(mixed.right - mixed.left) * (mixed.bottom - mixed.top);
    EXPECT_NEAR(mixed.own, 1 - area / 1200, 1e-6);
    own += mixed.own;
  }
  EXPECT_GT(own / count, 0.5);  // boxes reach over the edge, and lose area there
}

TEST(AugmentChain, MixupAndCutmix_EachBatchDrawsOne) {
  const auto chain = chain_of(R"({"cutmix_alpha": 1, "mixup_alpha": 0.2})", {3, 30, 40});
  int cut = 0;
  for (int i = 0; i < 1000; ++i) cut += chain.mix(mix(i)).cuts;
  EXPECT_NEAR(cut, 500, 60);
  EXPECT_FALSE(chain_of(R"({"flip": true})", {3, 8, 8}).mixes());
}

}  // namespace
}  // namespace fleet::data
