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

// Where the pixels of a row come from.
struct MovedRow {
  std::vector<int> at;
  std::vector<float> inside;
  std::array<std::vector<float>, 4> across, down;
  explicit MovedRow(int width) : at(width), inside(width) {
    for (auto* weights : {&across, &down}) weights->fill(std::vector<float>(width));
  }
};

namespace moved_baseline {
#include "data/move_rows.inc"
}  // namespace moved_baseline
#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx2")
namespace moved_avx2 {
#include "data/move_rows.inc"
}  // namespace moved_avx2
#pragma GCC pop_options
#endif

template <int kCount>
auto row_filter() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return &moved_avx2::filter_row<kCount>;
#endif
  return &moved_baseline::filter_row<kCount>;
}

// Weights of the two pixels around a position that is d after the first of them, or of four by
// Pillow's cubic (a = -1).
template <int kCount>
void set_weights(float d, int x, std::array<std::vector<float>, 4>* weights) {
  auto& w = *weights;
  if constexpr (kCount == 2) {
    w[0][x] = 1 - d;
    w[1][x] = d;
  } else {
    w[0][x] = d * (-1 + d * (2 - d));
    w[1][x] = 1 + d * d * (d - 2);
    w[2][x] = d * (1 + d * (1 - d));
    w[3][x] = d * d * (d - 1);
  }
}

constexpr int kPadding = 4;  // around a plane, so that taps outside need no test

// A plane with pixels around it: 0, or copies of the outermost.
std::vector<float> padded(const float* plane, int height, int width, bool black) {
  const int stride = width + 2 * kPadding;
  std::vector<float> all(size_t(stride) * (height + 2 * kPadding), 0.0f);
  for (int y = 0; y < height + 2 * kPadding; ++y) {
    const int from = std::clamp(y - kPadding, 0, height - 1);
    if (black && from != y - kPadding) continue;
    const float* source = plane + size_t(from) * width;
    float* row = &all[size_t(y) * stride];
    std::copy_n(source, width, row + kPadding);
    if (black) continue;
    std::fill_n(row, kPadding, source[0]);
    std::fill_n(row + kPadding + width, kPadding, source[width - 1]);
  }
  return all;
}

// Whether a position, in pixels from the centre of the first one, is on the image.
bool covers(float position, int size) {
  return position >= -0.5f && position < static_cast<float>(size) - 0.5f;
}

template <int kCount>
void move_filtered(const ImagePlanes& planes, const Inverse& map, const Sampling& sampling) {
  const int height = planes.image.height, width = planes.image.width;
  const int channels = planes.image.channels, stride = width + 2 * kPadding;
  const bool black = sampling.outside == Sampling::Outside::kBlack;
  std::vector<std::vector<float>> before;
  std::vector<float> fill(channels, 0.0f);
  for (int c = 0; c < channels; ++c) {
    before.push_back(padded(planes.channel(c), height, width, black));
    if (!black) fill[c] = static_cast<float>(std::lrint(255 * planes.mean[c])) / 255;
  }
  const auto filter = row_filter<kCount>();
  const GridRows grid(planes.image, map);
  std::vector<float> columns(width), rows(width);
  MovedRow row(width);
  for (int y = 0; y < height; ++y) {
    grid.compute(y, columns.data(), rows.data());
    for (int x = 0; x < width; ++x) {
      row.inside[x] = black || (covers(columns[x], width) && covers(rows[x], height)) ? 1 : 0;
      // Farther outside there are only zeros, or the fill.
      const float column = std::clamp(columns[x], -3.0f, static_cast<float>(width + 1));
      const float line = std::clamp(rows[x], -3.0f, static_cast<float>(height + 1));
      const float left = std::floor(column), above = std::floor(line);
      set_weights<kCount>(column - left, x, &row.across);
      set_weights<kCount>(line - above, x, &row.down);
      constexpr int kBefore = kCount / 2 - 1;
      row.at[x] = (static_cast<int>(above) - kBefore + kPadding) * stride + static_cast<int>(left) -
                  kBefore + kPadding;
    }
    for (int c = 0; c < channels; ++c) {
      filter(row, width, before[c].data(), stride, fill[c], planes.channel(c) + size_t(y) * width);
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
