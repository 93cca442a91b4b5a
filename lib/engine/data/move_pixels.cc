#include <algorithm>
#include <array>
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

double radians(double degrees) { return degrees * std::numbers::pi / 180; }

// torchvision's _get_inverse_affine_matrix(). All angles in radians.
struct Forward {
  double center_x = 0, center_y = 0, angle = 0, scale = 1, shear_x = 0, shear_y = 0;
  double right = 0, down = 0;
};
Inverse inverse(const Forward& by) {
  const double cos_y = std::cos(by.shear_y), tan_x = std::tan(by.shear_x);
  const double a = std::cos(by.angle - by.shear_y) / cos_y;
  const double b = -(a * tan_x + std::sin(by.angle));
  const double c = std::sin(by.angle - by.shear_y) / cos_y;
  const double d = std::cos(by.angle) - c * tan_x;
  Inverse map{.xx = d / by.scale, .xy = -b / by.scale, .yx = -c / by.scale, .yy = a / by.scale};
  const double x = by.center_x + by.right, y = by.center_y + by.down;
  map.x1 = by.center_x - map.xx * x - map.xy * y;
  map.y1 = by.center_y - map.yx * x - map.yy * y;
  return map;
}

// Rounds halves to even, for |value| < 2^22.
float rounded(float value) {
  constexpr float kMagic = 12582912;  // 1.5 * 2^23
  return (value + kMagic) - kMagic;
}

// Source positions of a row, in pixels from the centre of the first one, with the arithmetic in
// float of torch.nn.functional.grid_sample(), so that the same pixels are the nearest.
class GridRows {
 public:
  GridRows(const ImageShape& image, const Inverse& map)
      : width_(image.width),
        w_(static_cast<float>(image.width)),
        h_(static_cast<float>(image.height)),
        xx_(static_cast<float>(map.xx) / (0.5f * w_)),
        xy_(static_cast<float>(map.xy) / (0.5f * w_)),
        x1_(static_cast<float>(map.x1) / (0.5f * w_)),
        yx_(static_cast<float>(map.yx) / (0.5f * h_)),
        yy_(static_cast<float>(map.yy) / (0.5f * h_)),
        y1_(static_cast<float>(map.y1) / (0.5f * h_)) {}

  void compute(int y, float* columns, float* rows) const {
    const float down = static_cast<float>(y) - (h_ - 1) * 0.5f;
    for (int x = 0; x < width_; ++x) {
      const float right = static_cast<float>(x) - (w_ - 1) * 0.5f;
      const float grid_x = right * xx_ + down * xy_ + x1_, grid_y = right * yx_ + down * yy_ + y1_;
      columns[x] = ((grid_x + 1) * w_ - 1) * 0.5f;
      rows[x] = ((grid_y + 1) * h_ - 1) * 0.5f;
    }
  }

 private:
  const int width_;
  const float w_, h_, xx_, xy_, x1_, yx_, yy_, y1_;
};

void move_nearest(const ImagePlanes& planes, const Inverse& map) {
  const int height = planes.image.height, width = planes.image.width;
  const auto w = static_cast<float>(width), h = static_cast<float>(height);
  constexpr int kOutside = -1;
  const GridRows grid(planes.image, map);
  std::vector<float> columns(width), rows(width);
  std::vector<int> from(planes.plane());
  for (int y = 0; y < height; ++y) {
    grid.compute(y, columns.data(), rows.data());
    for (int x = 0; x < width; ++x) {
      const float column = rounded(columns[x]), row = rounded(rows[x]);
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

// The pixels of one axis that a filter reads for a position, and their weights.
struct Taps {
  int at[4];
  float weight[4];
};

// Weights of the two pixels around a position, or of four by Pillow's cubic (a = -1).
template <int kCount>
Taps taps_of(float position, int size, bool black) {
  const float first = std::floor(position), d = position - first;
  Taps taps;
  if constexpr (kCount == 2) {
    taps.weight[0] = 1 - d;
    taps.weight[1] = d;
  } else {
    taps.weight[0] = d * (-1 + d * (2 - d));
    taps.weight[1] = 1 + d * d * (d - 2);
    taps.weight[2] = d * (1 + d * (1 - d));
    taps.weight[3] = d * d * (d - 1);
  }
  const int begin = static_cast<int>(first) - (kCount / 2 - 1);
  for (int i = 0; i < kCount; ++i) {
    taps.at[i] = std::clamp(begin + i, 0, size - 1);
    if (black && taps.at[i] != begin + i) taps.weight[i] = 0;
  }
  return taps;
}

// Whether a position, in pixels from the centre of the first one, is on the image.
bool covers(float position, int size) {
  return position >= -0.5f && position < static_cast<float>(size) - 0.5f;
}

template <int kCount>
void move_filtered(const ImagePlanes& planes, const Inverse& map, const Sampling& sampling) {
  const int height = planes.image.height, width = planes.image.width;
  const int channels = planes.image.channels;
  const bool black = sampling.outside == Sampling::Outside::kBlack;
  const size_t plane = planes.plane();
  const std::vector<float> before(planes.pixels, planes.pixels + planes.image.count());
  std::vector<float> fill(channels, 0.0f);
  for (int c = 0; !black && c < channels; ++c) {
    fill[c] = static_cast<float>(std::lrint(255 * planes.mean[c])) / 255;
  }
  const GridRows grid(planes.image, map);
  std::vector<float> columns(width), rows(width);
  for (int y = 0; y < height; ++y) {
    grid.compute(y, columns.data(), rows.data());
    for (int x = 0; x < width; ++x) {
      float* to = planes.pixels + size_t(y) * width + x;
      // A position is bounded before it becomes an integer.
      const bool near = columns[x] > -2 && columns[x] < static_cast<float>(width + 1) &&
                        rows[x] > -2 && rows[x] < static_cast<float>(height + 1);
      const bool inside = black ? near : covers(columns[x], width) && covers(rows[x], height);
      if (!inside) {
        for (int c = 0; c < channels; ++c) to[c * plane] = fill[c];
        continue;
      }
      const Taps across = taps_of<kCount>(columns[x], width, black);
      const Taps down = taps_of<kCount>(rows[x], height, black);
      for (int c = 0; c < channels; ++c) {
        float sum = 0;
        for (int j = 0; j < kCount; ++j) {
          const float* from = &before[c * plane + size_t(down.at[j]) * width];
          float line = 0;
          for (int i = 0; i < kCount; ++i) line += across.weight[i] * from[across.at[i]];
          sum += down.weight[j] * line;
        }
        to[c * plane] = std::clamp(sum, 0.0f, 1.0f);
      }
    }
  }
}

void move_by(const ImagePlanes& planes, const Inverse& map, const Sampling& sampling) {
  switch (sampling.filter) {
    case Sampling::Filter::kNearest:
      return move_nearest(planes, map);
    case Sampling::Filter::kBilinear:
      return move_filtered<2>(planes, map, sampling);
    case Sampling::Filter::kBicubic:
      return move_filtered<4>(planes, map, sampling);
  }
}

}  // namespace

void translate(const ImagePlanes& planes, double x, double y, const Sampling& sampling) {
  move_by(planes, {.x1 = -x, .y1 = -y}, sampling);
}

void shear(const ImagePlanes& planes, double x_slope, double y_slope, const Sampling& sampling) {
  move_by(planes,
          inverse({.center_x = -planes.image.width * 0.5,
                   .center_y = -planes.image.height * 0.5,
                   .shear_x = std::atan(x_slope),
                   .shear_y = std::atan(y_slope)}),
          sampling);
}

void rotate(const ImagePlanes& planes, double degrees, const Sampling& sampling) {
  if (degrees == 0) return;
  move_by(planes, inverse({.angle = -radians(degrees)}), sampling);
}

void move(const ImagePlanes& planes, const Affine& by, const Sampling& sampling) {
  move_by(planes,
          inverse({.angle = radians(by.degrees),
                   .scale = by.scale,
                   .shear_x = radians(by.shear_x),
                   .shear_y = radians(by.shear_y),
                   .right = by.right,
                   .down = by.down}),
          sampling);
}

}  // namespace fleet::data
