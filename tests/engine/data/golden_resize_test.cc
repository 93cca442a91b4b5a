// Exact resizing against hashes of Pillow's pixels (scripts/make_golden_resize.py).
#include <gtest/gtest.h>

#include <cinttypes>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "data/exact_resize.h"
#include "data/pipeline.h"
#include "data/resize.h"
#include "tests/engine/data/helpers.h"
#include "tests/errors.h"
#include "tests/test_paths.h"

namespace fleet::data {
namespace {

using Golden = nlohmann::json;

const Golden& golden_resize() {
  static const Golden values = [] {
    std::ifstream file(source_folder() + "/tests/golden/resize.json");
    return Golden::parse(file);
  }();
  return values;
}

constexpr uint64_t kFnvStart = 0xCBF29CE484222325, kFnvPrime = 0x100000001B3;

struct Image {
  int channels = 0, height = 0, width = 0;
  explicit Image(const Golden& sides)
      : channels(sides[0].get<int>()), height(sides[1].get<int>()), width(sides[2].get<int>()) {}

  // Pixels of `step` bytes; 64 more are readable.
  std::vector<uint8_t> pixels(int step) const {
    const std::string name =
        std::to_string(height) + "x" + std::to_string(width) + "x" + std::to_string(channels);
    uint64_t start = kFnvStart;
    for (const unsigned char byte : name) start = (start ^ byte) * kFnvPrime;
    std::vector<uint8_t> bytes(size_t(height) * width * step + 64, 77);
    for (size_t i = 0; i < size_t(height) * width; ++i) {
      for (int c = 0; c < channels; ++c) {
        bytes[i * step + c] = static_cast<uint8_t>(mix(start + i * channels + c) % 256);
      }
    }
    return bytes;
  }
};

// The hash of planes of whole numbers, as interleaved bytes.
std::string hash_of(const std::vector<float>& planes, int channels, bool mirrored, int width) {
  const size_t plane = planes.size() / channels;
  uint64_t hash = kFnvStart;
  for (size_t i = 0; i < plane; ++i) {
    const size_t column = i % width;
    const size_t at = mirrored ? i - column + (width - 1 - column) : i;
    for (int c = 0; c < channels; ++c) {
      hash = (hash ^ static_cast<uint8_t>(planes[c * plane + at])) * kFnvPrime;
    }
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016" PRIx64, hash);
  return text;
}

std::string resized(const Image& image, int step, const CropGeometry& p, const std::string& set) {
  const std::vector<uint8_t> bytes = image.pixels(step);
  const Pixels pixels{.data = bytes.data(),
                      .step = step,
                      .stride = int64_t{image.width} * step,
                      .width = image.width,
                      .height = image.height};
  std::vector<float> planes(size_t(image.channels) * p.out_height * p.out_width, -1);
  const float scale[] = {1, 1, 1}, bias[] = {0, 0, 0};
  if (is_copy(p)) {
    copy_pixels(pixels, p, image.channels, scale, bias, planes.data());
  } else {
    ExactResizer(set).run(pixels, p, image.channels, scale, bias, planes.data());
  }
  return hash_of(planes, image.channels, p.flip, p.out_width);
}

std::vector<int> steps_of(const Image& image) {
  return image.channels == 1 ? std::vector{1} : std::vector{3, 4};
}

TEST(ExactResizer, EveryFilterSizeAndInstructionSet_HasPillowsBits) {
  for (const Golden& one : golden_resize()["resize"]) {
    const Image image(one["image"]);
    CropGeometry p = whole_image(image.height, image.width);
    p.out_height = one["to"][0].get<int>();
    p.out_width = one["to"][1].get<int>();
    p.filter = filter_named(one["filter"].get<std::string>());
    for (const std::string& set : exact_instruction_sets()) {
      for (const int step : steps_of(image)) {
        for (const bool flip : {false, true}) {
          p.flip = flip;
          p.passes = PassOrder::kPillow13;
          EXPECT_EQ(resized(image, step, p, set), one["pillow13"].get<std::string>())
              << one << set << step << flip;
          p.passes = PassOrder::kPillow12;
          EXPECT_EQ(resized(image, step, p, set), one["pillow12"].get<std::string>())
              << one << set << step << flip;
        }
      }
    }
  }
}

TEST(AugmentChain, EvaluationByCropMode_HasTheBitsOfTimmsTransforms) {
  const auto mean = golden_resize()["mean"].get<std::vector<double>>();
  for (const Golden& one : golden_resize()["evaluate"]) {
    const Image image(one["image"]);
    const Golden keys = {{"crop_pct", one["crop_pct"]}, {"crop_mode", one["crop_mode"]}};
    const AugmentChain chain(
        ConfigTree::from_json(keys.dump(), "job.json").validate(augment_schema(false)), false,
        {image.channels, one["to"][0].get<int>(), one["to"][1].get<int>()},
        image.channels == 1 ? std::vector{mean[0]} : mean, {1},
        {.filter = filter_named(one["filter"].get<std::string>())});
    const CropGeometry p = chain.set_geometry(image.height, image.width, 1, [] { return "image"; });
    for (const int step : steps_of(image)) {
      EXPECT_EQ(resized(image, step, p, ""), one["pillow13"].get<std::string>()) << one;
    }
  }
}

// The parts that a decoder returns for a crop give the same pixels as the whole image.
void expect_same_of_decoded_part(const AugmentChain& chain) {
  const Image image(Golden{3, 61, 41});
  const CropGeometry p = chain.set_geometry(61, 41, 1, [] { return "image"; });
  const std::vector<uint8_t> bytes = image.pixels(4);
  const Region region = region_of(p);
  EXPECT_LT(region.height, 61);
  const float scale[] = {1, 1, 1}, bias[] = {0, 0, 0};
  std::vector<float> whole(chain.image().count()), part(whole.size());
  Pixels pixels{.data = bytes.data(), .step = 4, .stride = 164, .width = 41, .height = 61};
  ExactResizer().run(pixels, p, 3, scale, bias, whole.data());
  pixels.data += region.y * pixels.stride + ptrdiff_t{4} * region.x;
  pixels.x = region.x;
  pixels.y = region.y;
  pixels.width = region.width;
  pixels.height = region.height;
  ExactResizer().run(pixels, p, 3, scale, bias, part.data());
  EXPECT_EQ(part, whole);
}

AugmentChain evaluation_of(const std::string& keys, const ImageShape& image, Filter filter) {
  return {ConfigTree::from_json(keys, "job.json").validate(augment_schema(false)),
          false,
          image,
          {0},
          {1},
          {.filter = filter}};
}

TEST(ExactResizer, DecodedPart_GivesTheSamePixels) {
  expect_same_of_decoded_part(evaluation_of(R"({"resize": 30})", {3, 20, 24}, Filter::kLanczos));
}

// A few pixels around the middle one are enlarged: fewer than the kernels read at a time.
TEST(ExactResizer, NarrowDecodedPart_GivesTheSamePixels) {
  for (const Filter filter :
       {Filter::kBox, Filter::kBilinear, Filter::kBicubic, Filter::kLanczos}) {
    expect_same_of_decoded_part(evaluation_of(R"({"resize": 4000})", {3, 20, 24}, filter));
  }
}

// The longer side would be longer than an int can say.
TEST(ExactResizer, LineOfPixels_IsEnlarged) {
  const AugmentChain chain = evaluation_of(R"({"resize": 65536})", {3, 4, 4}, Filter::kBilinear);
  const CropGeometry p = chain.set_geometry(1, 65535, 1, [] { return "image"; });
  EXPECT_GT(p.resized_width, p.resized_height);
  const std::vector<uint8_t> bytes(size_t{65535} * 4 + 64, 9);
  const Pixels pixels{
      .data = bytes.data(), .step = 4, .stride = 65535 * 4, .width = 65535, .height = 1};
  const float scale[] = {1, 1, 1}, bias[] = {0, 0, 0};
  std::vector<float> planes(chain.image().count());
  ExactResizer().run(pixels, p, 3, scale, bias, planes.data());
  EXPECT_EQ(planes, std::vector<float>(planes.size(), 9));
}

// Resized in float, a border leaves the picture where the exact filter puts it.
TEST(Resizer, Border_FillsWithTheMean) {
  const Image image(Golden{3, 61, 40});
  const std::vector<uint8_t> bytes = image.pixels(3);
  const Pixels pixels{.data = bytes.data(), .step = 3, .stride = 120, .width = 40, .height = 61};
  for (const char* flip : {"false", "true"}) {
    std::vector<float> planes[2];
    for (const Filter filter : {Filter::kFloatBilinear, Filter::kBilinear}) {
      const std::string keys = R"({"crop_pct": 1, "crop_mode": "border", "flip": )";
      const AugmentChain chain(
          ConfigTree::from_json(keys + flip + "}", "job.json").validate(augment_schema(true)), true,
          {3, 30, 33}, {0.485, 0.456, 0.406}, {1}, {.filter = filter});
      const CropGeometry p = chain.set_geometry(61, 40, 1, [] { return "image"; });
      const float scale[] = {1, 1, 1}, bias[] = {0, 0, 0};
      std::vector<float>& to = planes[filter == Filter::kBilinear];
      to.resize(chain.image().count());
      if (filter == Filter::kBilinear) {
        ExactResizer().run(pixels, p, 3, scale, bias, to.data());
      } else {
        Resizer().run(pixels, p, 3, scale, bias, to.data());
      }
    }
    for (size_t i = 0; i < planes[0].size(); ++i) {
      ASSERT_NEAR(planes[0][i], planes[1][i], 1.01) << i << " " << flip;
    }
    EXPECT_EQ(planes[0][0], 124);                 // round(255 * 0.485)
    EXPECT_EQ(planes[1][2 * 30 * 33 + 32], 104);  // round(255 * 0.406)
  }
}

// The keys of a job lead to the filter, for evaluation and for training.
TEST(InputPipeline, InterpolationOfTheJob_MakesItsPixels) {
  const testing::TempFolder folder;
  const auto picture = testing::picture(40, 61, 3, 5);
  testing::write(folder / "a.png", testing::png_of(picture, 40, 61, 3));
  testing::write(folder / "list.txt", "a.png 0\n");
  const auto images = [&](const std::string& keys, bool train) {
    const Settings data = testing::settings_of(
        "image_list", R"({"train": {"list": "list.txt"}, "test": {"list": "list.txt"}, "root": ")" +
                          folder.path() + R"(", "batch_size": 1, "eval": {"crop_pct": 0.9},
                          "image": {"channels": 3, "height": 16, "width": 16})" +
                          keys + "}");
    const auto pipeline = make_pipeline(data, train, {});
    pipeline->start_epoch(0);
    const Batch* batch = pipeline->next();
    return std::vector<float>(batch->images.begin(), batch->images.end());
  };
  const std::string resized = R"(, "augment": {"crop_pct": 0.9, "interpolation": )";
  const auto bicubic = images(R"(, "interpolation": "bicubic")", false);
  EXPECT_NE(bicubic, images("", false));
  EXPECT_NE(bicubic, images(R"(, "interpolation": "lanczos")", false));
  EXPECT_EQ(bicubic, images(R"(, "interpolation": "bicubic")" + resized + R"("same"})", true));
  EXPECT_EQ(bicubic, images(resized + R"("bicubic"})", true));
  for (const float value : bicubic) {
    EXPECT_NEAR(value * 255, std::round(value * 255), 1e-4);  // rounded to 8 bits
  }
}

TEST(AugmentChain, RandomInterpolation_DrawsBothFiltersByTheSample) {
  const AugmentChain chain(ConfigTree::from_json(R"({"random_resized_crop": true})", "job.json")
                               .validate(augment_schema(true)),
                           true, {3, 8, 8}, {0}, {1}, {.random = true});
  int bicubic = 0;
  for (uint64_t key = 0; key < 200; ++key) {
    const Filter filter = chain.set_geometry(20, 20, key, [] { return ""; }).filter;
    EXPECT_EQ(filter, chain.set_geometry(30, 20, key, [] { return ""; }).filter);
    ASSERT_TRUE(filter == Filter::kBicubic || filter == Filter::kBilinear);
    bicubic += filter == Filter::kBicubic;
  }
  EXPECT_GT(bicubic, 60);
  EXPECT_LT(bicubic, 140);
}

TEST(AugmentChain, CropKeysThatContradict_AreRefusedByName) {
  const auto refusal = [](const std::string& keys) {
    const Settings settings =
        ConfigTree::from_json(keys, "job.json").validate(augment_schema(false));
    return usage_failure([&] { AugmentChain(settings, false, {3, 8, 8}, {0}, {1}); });
  };
  EXPECT_NE(refusal(R"({"resize": 9, "crop_pct": 0.9})").find("crop_pct"), std::string::npos);
  EXPECT_NE(refusal(R"({"crop_mode": "squash"})").find("crop_pct"), std::string::npos);
  EXPECT_NE(refusal(R"({"crop_pct": 0.05})").find("tenth"), std::string::npos);
}

}  // namespace
}  // namespace fleet::data
