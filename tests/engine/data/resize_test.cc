#include "data/resize.h"

#include <gmock/gmock.h>

#include <cmath>

#include "base/error.h"
#include "tests/engine/data/helpers.h"

namespace fleet::data {
namespace {

using testing::picture;

Pixels view(const std::vector<uint8_t>& pixels, int height, int width, int step) {
  return {.data = pixels.data(),
          .step = step,
          .stride = int64_t{width} * step,
          .width = width,
          .height = height};
}

CropGeometry whole(int height, int width, int out_height, int out_width) {
  return {.source_height = height,
          .source_width = width,
          .out_height = out_height,
          .out_width = out_width,
          .width = double(width),
          .height = double(height),
          .tap_width = width,
          .tap_height = height};
}

// The filter as its definition says, in double: each output is the mean of the pixels around its
// centre, weighed by a triangle as wide as the scale (at least 1).
std::vector<double> weights_at(double at, double extent, int outputs, int i, int low, int high) {
  const double scale = extent / outputs, support = std::max(scale, 1.0);
  const double centre = at + (i + 0.5) * scale;
  std::vector<double> weights(high, 0.0);
  double sum = 0;
  for (int p = low; p < high; ++p) {
    weights[p] = std::max(0.0, 1 - std::abs(p + 0.5 - centre) / support);
    sum += weights[p];
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

std::vector<double> reference(const std::vector<uint8_t>& pixels, int step, const CropGeometry& p,
                              int channels) {
  std::vector<double> out;
  for (int c = 0; c < channels; ++c) {
    for (int y = 0; y < p.out_height; ++y) {
      const auto down = weights_at(p.y, p.height, p.out_height, y, p.tap_y, p.tap_y + p.tap_height);
      for (int x = 0; x < p.out_width; ++x) {
        const auto across = weights_at(p.x, p.width, p.out_width, p.flip ? p.out_width - 1 - x : x,
                                       p.tap_x, p.tap_x + p.tap_width);
        double sum = 0;
        for (size_t row = 0; row < down.size(); ++row) {
          if (down[row] == 0) continue;
          for (size_t column = 0; column < across.size(); ++column) {
            sum += down[row] * across[column] * pixels[(row * p.source_width + column) * step + c];
          }
        }
        out.push_back(sum);
      }
    }
  }
  return out;
}

std::vector<float> resized(const Pixels& pixels, const CropGeometry& p, int channels,
                           const std::string& set = {}) {
  std::vector<float> out(size_t(channels) * p.out_height * p.out_width, -1);
  const float scale[] = {1, 1, 1}, bias[] = {0, 0, 0};
  Resizer(set).run(pixels, p, channels, scale, bias, out.data());
  return out;
}

double difference(const std::vector<float>& a, const std::vector<double>& b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return a.size() == b.size() ? most : 1e9;
}

TEST(Resizer, EveryScaleLayoutAndInstructionSet_MatchesTheDefinition) {
  const struct {
    int height, width, out_height, out_width;
  } sizes[] = {{50, 70, 25, 31}, {20, 15, 37, 64}, {33, 47, 33, 20}, {90, 120, 7, 9},
               {64, 64, 16, 17}, {3, 2, 5, 6},     {1, 1, 4, 4},     {200, 300, 3, 2}};
  for (const auto& s : sizes) {
    for (const int step : {1, 3, 4}) {
      const int channels = step == 1 ? 1 : 3;
      const auto pixels = picture(s.height, s.width, step);
      for (const bool flip : {false, true}) {
        CropGeometry p = whole(s.height, s.width, s.out_height, s.out_width);
        p.flip = flip;
        const auto expected = reference(pixels, step, p, channels);
        const auto got = resized(view(pixels, s.height, s.width, step), p, channels);
        EXPECT_LT(difference(got, expected), 2e-3)
            << s.height << "x" << s.width << " to " << s.out_height << "x" << s.out_width;
        for (const std::string& set : resize_instruction_sets()) {
          EXPECT_EQ(resized(view(pixels, s.height, s.width, step), p, channels, set), got) << set;
        }
      }
    }
  }
}

TEST(Resizer, Box_TakesPixelsOfTheTapRectangleOnly) {
  const auto pixels = picture(60, 80, 3);
  CropGeometry p = whole(60, 80, 16, 16);
  p.x = p.tap_x = 11;
  p.y = p.tap_y = 7;
  p.width = p.tap_width = 40;
  p.height = p.tap_height = 33;
  EXPECT_LT(difference(resized(view(pixels, 60, 80, 3), p, 3), reference(pixels, 3, p, 3)), 1e-3);
}

// Resizing the box of a centre crop is the same as resizing everything and cropping.
TEST(Resizer, FractionalBox_EqualsResizeThenCrop) {
  const auto pixels = picture(60, 80, 3);
  const auto all = resized(view(pixels, 60, 80, 3), whole(60, 80, 24, 32), 3);
  CropGeometry p = whole(60, 80, 16, 16);
  p.y = 4 * 60.0 / 24;
  p.x = 8 * 80.0 / 32;
  p.height = 16 * 60.0 / 24;
  p.width = 16 * 80.0 / 32;
  const auto part = resized(view(pixels, 60, 80, 3), p, 3);
  for (int c = 0; c < 3; ++c) {
    for (int y = 0; y < 16; ++y) {
      for (int x = 0; x < 16; ++x) {
        EXPECT_NEAR(part[(c * 16 + y) * 16 + x], all[(c * 24 + y + 4) * 32 + x + 8], 1e-3);
      }
    }
  }
}

TEST(Resizer, ScaleAndBias_AreThoseOfTheChannel) {
  const std::vector<uint8_t> pixels(8 * 8 * 3, 100);
  std::vector<float> out(3 * 4 * 4);
  const float scale[] = {1, 2, 3}, bias[] = {10, 20, 30};
  Resizer().run(view(pixels, 8, 8, 3), whole(8, 8, 4, 4), 3, scale, bias, out.data());
  for (int c = 0; c < 3; ++c) EXPECT_NEAR(out[c * 16 + 5], 100 * scale[c] + bias[c], 1e-3);
}

TEST(Resizer, UnknownInstructionSet_IsUnsupported) {
  EXPECT_THROW(Resizer("sse9"), Error);
  EXPECT_EQ(resize_instruction_sets().back(), "baseline");
}

TEST(CopyPixels, OverTheEdgeAndMirrored_PutsBlackOutside) {
  const std::vector<uint8_t> pixels{1, 2, 3, 4, 5, 6};  // 2 x 3, grey
  CropGeometry p = whole(2, 3, 3, 3);
  p.x = -1;
  p.y = 1;
  p.width = p.height = 3;
  ASSERT_TRUE(is_copy(p));
  const float scale = 10, bias = 1;
  std::vector<float> out(9);
  copy_pixels(view(pixels, 2, 3, 1), p, 1, &scale, &bias, out.data());
  EXPECT_THAT(out, ::testing::ElementsAre(1, 41, 51, 1, 1, 1, 1, 1, 1));
  p.flip = true;
  copy_pixels(view(pixels, 2, 3, 1), p, 1, &scale, &bias, out.data());
  EXPECT_THAT(out, ::testing::ElementsAre(51, 41, 1, 1, 1, 1, 1, 1, 1));
}

TEST(CopyPixels, ColourLayouts_GiveTheSamePlanes) {
  const auto packed = picture(5, 7, 3);
  std::vector<uint8_t> padded;
  for (size_t i = 0; i < packed.size(); i += 3) {
    padded.insert(padded.end(), {packed[i], packed[i + 1], packed[i + 2], 99});
  }
  const CropGeometry p = whole(5, 7, 5, 7);
  const float scale[] = {1, 1, 1}, bias[] = {0, 0, 0};
  std::vector<float> three(105), four(105);
  copy_pixels(view(packed, 5, 7, 3), p, 3, scale, bias, three.data());
  copy_pixels(view(padded, 5, 7, 4), p, 3, scale, bias, four.data());
  EXPECT_EQ(three, four);
  EXPECT_EQ(three[35 + 9], packed[9 * 3 + 1]);
}

}  // namespace
}  // namespace fleet::data
