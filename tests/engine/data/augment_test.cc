#include "data/augment.h"

#include <gmock/gmock.h>

#include <cmath>

#include "base/error.h"
#include "tests/engine/data/helpers.h"
#include "tests/errors.h"

namespace fleet::data {
namespace {

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

TEST(ColorJitter, ContrastAndSaturation_KeepGreyMeans) {
  const auto grey = [](const std::vector<float>& p, int i, int n) {
    return 0.299f * p[i] + 0.587f * p[n + i] + 0.114f * p[2 * n + i];
  };
  const std::vector<float> pixels{0.4f, 0.5f, 0.45f, 0.55f, 0.5f, 0.4f};
  for (uint64_t key = 0; key < 20; ++key) {
    const auto contrasted = jittered(R"("contrast": 0.5)", pixels, key);
    EXPECT_NEAR(grey(contrasted, 0, 2) + grey(contrasted, 1, 2),
                grey(pixels, 0, 2) + grey(pixels, 1, 2), 1e-5);
    const auto saturated = jittered(R"("saturation": 0.5)", pixels, key);
    EXPECT_NEAR(grey(saturated, 0, 2), grey(pixels, 0, 2), 1e-5);
    EXPECT_NEAR(grey(saturated, 1, 2), grey(pixels, 1, 2), 1e-5);
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

}  // namespace
}  // namespace fleet::data
