#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

// interpolate() of PyTorch, without align_corners.
Values naive_resize(const Shape& from, int64_t height, int64_t width, const Values& x) {
  const auto place = [](int64_t i, int64_t inputs, int64_t outputs) {
    const double at = (static_cast<double>(i) + 0.5) * static_cast<double>(inputs) /
                          static_cast<double>(outputs) -
                      0.5;
    return std::clamp(at, 0.0, static_cast<double>(inputs - 1));
  };
  Values y;
  for (int64_t plane = 0; plane < from[0] * from[1]; ++plane) {
    for (int64_t i = 0; i < height; ++i) {
      for (int64_t j = 0; j < width; ++j) {
        const double row = place(i, from[2], height), column = place(j, from[3], width);
        double sum = 0;
        for (int64_t h = 0; h < from[2]; ++h) {
          const double down = std::max(0.0, 1 - std::abs(row - static_cast<double>(h)));
          for (int64_t w = 0; down > 0 && w < from[3]; ++w) {
            const double across = std::max(0.0, 1 - std::abs(column - static_cast<double>(w)));
            sum += down * across * x[(plane * from[2] + h) * from[3] + w];
          }
        }
        y.push_back(sum);
      }
    }
  }
  return y;
}

void check_resize(const Shape& x, int64_t height, int64_t width) {
  SCOPED_TRACE(x.text() + " to " + std::to_string(height) + " x " + std::to_string(width));
  check_op({.type = "resize_bilinear",
            .attributes = {{"size", std::vector<int64_t>{height, width}}},
            .inputs = {{.shape = x}},
            .reference = [&](const std::vector<Values>& in) {
              return std::vector<Values>{naive_resize(x, height, width, in[0])};
            }});
}

TEST(ResizeBilinear, Larger_MatchesReference) {
  check_resize({2, 3, 4, 5}, 11, 13);
  check_resize({1, 2, 3, 3}, 24, 6);
}

TEST(ResizeBilinear, Smaller_MatchesReference) {
  check_resize({1, 2, 9, 12}, 4, 5);
  check_resize({1, 1, 7, 3}, 2, 8);
}

TEST(ResizeBilinear, OnePixel_Spreads) { check_resize({2, 3, 1, 1}, 4, 6); }

TEST(ResizeBilinear, SameSize_IsACopy) { check_resize({1, 2, 5, 4}, 5, 4); }

TEST(ResizeBilinear, NoSize_IsRefused) { EXPECT_THROW(check_resize({1, 1, 2, 2}, 0, 2), Error); }

}  // namespace
}  // namespace fleet
