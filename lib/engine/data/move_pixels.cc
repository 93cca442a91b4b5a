#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "data/adjust_image.h"

namespace fleet::data {
namespace {

// Maps an output position to its source, both relative to the image's centre:
// source = (xx * x + xy * y + x1, yx * x + yy * y + y1).
struct Inverse {
  double xx = 1, xy = 0, x1 = 0, yx = 0, yy = 1, y1 = 0;
};

// torchvision's _get_inverse_affine_matrix() at scale 1. All angles in radians.
Inverse inverse(double center_x, double center_y, double angle, double shear_x, double shear_y) {
  const double cos_y = std::cos(shear_y), tan_x = std::tan(shear_x);
  const double a = std::cos(angle - shear_y) / cos_y;
  const double b = -(a * tan_x + std::sin(angle));
  const double c = std::sin(angle - shear_y) / cos_y;
  const double d = std::cos(angle) - c * tan_x;
  Inverse map{.xx = d, .xy = -b, .yx = -c, .yy = a};
  map.x1 = center_x - map.xx * center_x - map.xy * center_y;
  map.y1 = center_y - map.yx * center_x - map.yy * center_y;
  return map;
}

// Rounds halves to even, for |value| < 2^22.
float rounded(float value) {
  constexpr float kMagic = 12582912;  // 1.5 * 2^23
  return (value + kMagic) - kMagic;
}

// The same arithmetic in float as torch.nn.functional.grid_sample(), so that the same pixels are
// the nearest.
void apply(const ImagePlanes& planes, const Inverse& map) {
  const int height = planes.image.height, width = planes.image.width;
  const auto w = static_cast<float>(width), h = static_cast<float>(height);
  const float xx = static_cast<float>(map.xx) / (0.5f * w),
              xy = static_cast<float>(map.xy) / (0.5f * w);
  const float yx = static_cast<float>(map.yx) / (0.5f * h),
              yy = static_cast<float>(map.yy) / (0.5f * h);
  const float x1 = static_cast<float>(map.x1) / (0.5f * w),
              y1 = static_cast<float>(map.y1) / (0.5f * h);
  constexpr int kOutside = -1;
  std::vector<int> from(planes.plane());
  for (int y = 0; y < height; ++y) {
    const float down = static_cast<float>(y) - (h - 1) * 0.5f;
    for (int x = 0; x < width; ++x) {
      const float right = static_cast<float>(x) - (w - 1) * 0.5f;
      const float grid_x = right * xx + down * xy + x1, grid_y = right * yx + down * yy + y1;
      const float column = rounded(((grid_x + 1) * w - 1) * 0.5f);
      const float row = rounded(((grid_y + 1) * h - 1) * 0.5f);
      const bool inside = column >= 0 && column < w && row >= 0 && row < h;
      from[size_t(y) * width + x] =
          inside ? static_cast<int>(row) * width + static_cast<int>(column) : kOutside;
    }
  }
  std::vector<float> before(planes.plane());
  for (int c = 0; c < planes.image.channels; ++c) {
    float* values = planes.channel(c);
    std::copy_n(values, before.size(), before.begin());
    for (size_t i = 0; i < before.size(); ++i) {
      values[i] = from[i] == kOutside ? 0 : before[from[i]];
    }
  }
}

}  // namespace

void translate(const ImagePlanes& planes, int x, int y) {
  apply(planes, {.x1 = static_cast<double>(-x), .y1 = static_cast<double>(-y)});
}

void shear(const ImagePlanes& planes, double x_slope, double y_slope) {
  apply(planes, inverse(-planes.image.width * 0.5, -planes.image.height * 0.5, 0,
                        std::atan(x_slope), std::atan(y_slope)));
}

void rotate(const ImagePlanes& planes, double degrees) {
  if (degrees == 0) return;
  apply(planes, inverse(0, 0, -degrees * std::numbers::pi / 180, 0, 0));
}

}  // namespace fleet::data
