// Batches of bytes: what a device makes of them is what the pipeline would have made itself.
#include <gtest/gtest.h>

#include <cmath>

#include "data/pipeline.h"
#include "tests/engine/data/helpers.h"

namespace fleet::data {
namespace {

struct PixelSource {
  std::string name, json;
  std::vector<double> mean, deviation;
};

// By the formula of normalize_image.
std::vector<float> normalised(const Batch& batch, const PixelSource& source) {
  const ImageShape& image = batch.image;
  const int64_t pixel = bytes_a_pixel(image);
  std::vector<float> out;
  for (int64_t i = 0; i < batch.size; ++i) {
    for (int c = 0; c < image.channels; ++c) {
      for (int y = 0; y < image.height; ++y) {
        for (int x = 0; x < image.width; ++x) {
          const int column = batch.flips[i] ? image.width - 1 - x : x;
          const int64_t at = ((i * image.height + y) * image.width + column) * pixel + c;
          out.push_back(static_cast<float>((batch.pixels[at] / 255.0 - source.mean[c]) /
                                           source.deviation[c]));
        }
      }
    }
  }
  return out;
}

void check(const PixelSource& source, bool train, double tolerance) {
  const Settings settings = testing::settings_of(source.name, source.json);
  auto floats = make_pipeline(settings, train, {.seed = 3});
  auto bytes = make_pipeline(settings, train, {.seed = 3, .bytes = true});
  floats->start_epoch(1);
  bytes->start_epoch(1);
  int64_t flipped = 0, samples = 0;
  while (const Batch* want = floats->next()) {
    const Batch* got = bytes->next();
    ASSERT_TRUE(got);
    ASSERT_TRUE(got->images.empty());
    ASSERT_TRUE(want->pixels.empty());
    const std::vector<float> values = normalised(*got, source);
    for (size_t i = 0; i < values.size(); ++i) {
      // Rounding to a byte is off by half of one at most.
      ASSERT_NEAR(values[i], want->images[i], tolerance) << i;
    }
    for (int64_t i = 0; i < got->size; ++i, ++samples) {
      flipped += got->flips[i];
      EXPECT_EQ(got->labels[i], want->labels[i]);
      EXPECT_EQ(got->keys[i], want->keys[i]);
      EXPECT_EQ(got->weights[i], want->weights[i]);
    }
  }
  EXPECT_FALSE(bytes->next());
  if (train) {
    EXPECT_GT(flipped, 0);
    EXPECT_LT(flipped, samples);
  } else {
    EXPECT_EQ(flipped, 0);
  }
}

class Photographs : public ::testing::Test {
 protected:
  Photographs() {
    std::string list;
    for (int i = 0; i < 12; ++i) {
      const std::string name = "image" + std::to_string(i) + ".jpg";
      testing::write(folder_ / name, testing::jpeg_picture(40 + i % 7, 50 - i % 5, i));
      list += name + " " + std::to_string(i % 4) + "\n";
    }
    testing::write(folder_ / "list.txt", list);
  }
  PixelSource source(const std::string& augment) const {
    return {"image_list",
            R"({"root": ")" + folder_.path() +
                R"(", "image": {"channels": 3, "height": 24, "width": 20}, "batch_size": 4,
                    "train": {"list": "list.txt"}, "test": {"list": "list.txt"},
                    "eval": {"resize": 28}, "augment": {)" +
                augment + R"(}, "mean": [0.5, 0.4, 0.3], "std": [0.2, 0.3, 0.4]})",
            {0.5, 0.4, 0.3},
            {0.2, 0.3, 0.4}};
  }
  testing::TempFolder folder_;
};

constexpr double kHalfAByte = 0.5 / 255 / 0.2 + 1e-5;

TEST_F(Photographs, CroppedAndMirrored_AreTheSameToHalfAByte) {
  check(source(R"("random_resized_crop": true, "flip": true)"), true, kHalfAByte);
}

TEST_F(Photographs, WithChangedColours_AreTheSameToHalfAByte) {
  check(source(R"("random_resized_crop": true, "flip": true,
                  "color_jitter": {"brightness": 0.4, "hue": 0.1})"),
        true, kHalfAByte);
}

TEST_F(Photographs, OfEvaluation_AreNotMirrored) { check(source(""), false, kHalfAByte); }

TEST(GreyBytes, CopiedPixels_AreExact) {
  check({"synthetic",
         R"({"image": {"channels": 1, "height": 4, "width": 5}, "train": {"samples": 40},
             "augment": {"flip": true}, "mean": [0.1], "std": [0.3], "batch_size": 8})",
         {0.1},
         {0.3}},
        true, 1e-6);
}

}  // namespace
}  // namespace fleet::data
