#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

struct NormalizeImageCase {
  Shape pixels;  // N, H, W, P
  std::vector<double> mean, deviation;
  bool flips = true;
};

Values bytes(int64_t count, int factor) {
  Values all(count);
  for (int64_t i = 0; i < count; ++i) all[i] = static_cast<double>(i * factor % 256);
  return all;
}

Values formula(const NormalizeImageCase& c, const Values& pixels, const Values& flip) {
  const int64_t n = c.pixels[0], h = c.pixels[1], w = c.pixels[2], p = c.pixels[3];
  Values image;
  for (int64_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < c.mean.size(); ++k) {
      for (int64_t y = 0; y < h; ++y) {
        for (int64_t x = 0; x < w; ++x) {
          const int64_t column = c.flips && flip[i] != 0 ? w - 1 - x : x;
          const double value = pixels[((i * h + y) * w + column) * p + k];
          image.push_back((value / 255 - c.mean[k]) / c.deviation[k]);
        }
      }
    }
  }
  return image;
}

void check_normalize_image(const NormalizeImageCase& c, DType to) {
  check_op(
      {.type = "normalize_image",
       .dtype = to,
       .attributes = {{"mean", c.mean}, {"std", c.deviation}, {"to", std::string(name_of(to))}},
       .inputs = {{.shape = c.pixels,
                   .values = bytes(c.pixels.elements(), 37),
                   .dtype = DType::kUInt8},
                  {.shape = {c.pixels[0]},
                   .values = bytes(c.pixels[0], 1),
                   .dtype = DType::kUInt8,
                   .present = c.flips}},
       .reference =
           [&](const std::vector<Values>& in) {
             return std::vector<Values>{formula(c, in[0], in[1])};
           },
       .tolerance = 1e-6,
       .check_gradient = false});
}

const NormalizeImageCase kColour = {{3, 5, 7, 4}, {0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}};
const NormalizeImageCase kGrey = {{2, 4, 4, 1}, {0.1307}, {0.3081}};

TEST(NormalizeImage, Colour_MirrorsAndNormalises) {
  check_normalize_image(kColour, DType::kFloat32);
}
TEST(NormalizeImage, Grey_MirrorsAndNormalises) { check_normalize_image(kGrey, DType::kFloat32); }
TEST(NormalizeImage, Float16_IsRoundedOnce) { check_normalize_image(kColour, DType::kFloat16); }
TEST(NormalizeImage, BFloat16_IsRoundedOnce) { check_normalize_image(kColour, DType::kBFloat16); }

TEST(NormalizeImage, WithoutFlip_TakesRowsAsTheyAre) {
  NormalizeImageCase straight = kColour;
  straight.flips = false;
  check_normalize_image(straight, DType::kFloat32);
}

TEST(NormalizeImage, ThreeBytesAPixel_IsAnError) {
  Program program;
  const SectionId section = program.add_section("main", {});
  const VarId in = program.feed("pixels", DType::kUInt8, {1, 2, 2, 3});
  EXPECT_THROW(
      program.emit(section, "normalize_image", {in, kNoVar},
                   {{"mean", std::vector<double>(3)}, {"std", std::vector<double>(3, 1.0)}}),
      Error);
}

}  // namespace
}  // namespace fleet
