#include <algorithm>
#include <cmath>
#include <numbers>

#include "data/adjust_image.h"
#include "data/pixel_scratch.h"

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

// Pixels of a row are moved in spans of this length: arrays of known length need no tests of
// aliasing, and their loops are vectorized.
constexpr int kSpan = 32;

// Source positions, in pixels from the centre of the first one, with the arithmetic in float of
// torch.nn.functional.grid_sample(), so that the same pixels are the nearest.
class SourceGrid {
 public:
  SourceGrid(const ImageShape& image, const Inverse& map)
      : w_(static_cast<float>(image.width)),
        h_(static_cast<float>(image.height)),
        xx_(static_cast<float>(map.xx) / (0.5f * w_)),
        xy_(static_cast<float>(map.xy) / (0.5f * w_)),
        x1_(static_cast<float>(map.x1) / (0.5f * w_)),
        yx_(static_cast<float>(map.yx) / (0.5f * h_)),
        yy_(static_cast<float>(map.yy) / (0.5f * h_)),
        y1_(static_cast<float>(map.y1) / (0.5f * h_)) {}

  float width() const { return w_; }
  float height() const { return h_; }
  // Of a span from [x, y] on.
  void compute(int x, int y, float (&columns)[kSpan], float (&rows)[kSpan]) const {
    const float down = static_cast<float>(y) - (h_ - 1) * 0.5f;
    for (int i = 0; i < kSpan; ++i) {
      const float right = static_cast<float>(x + i) - (w_ - 1) * 0.5f;
      const float grid_x = right * xx_ + down * xy_ + x1_, grid_y = right * yx_ + down * yy_ + y1_;
      columns[i] = ((grid_x + 1) * w_ - 1) * 0.5f;
      rows[i] = ((grid_y + 1) * h_ - 1) * 0.5f;
    }
  }

 private:
  const float w_, h_, xx_, xy_, x1_, yx_, yy_, y1_;
};

// Red, green and blue of a pixel, and a value that is not used: taps of all channels are loaded at
// once, with the same bits on every processor.
using Pixel [[gnu::vector_size(16)]] = float;

// An image, pixel by pixel, with pixels around it, so that taps outside need no test.
class PixelGrid {
 public:
  static constexpr int kPadding = 4;

  // black: pixels around the image are 0; else they are copies of the outermost.
  PixelGrid(const ImagePlanes& planes, bool black)
      : height_(planes.image.height),
        width_(planes.image.width),
        stride_(width_ + 2 * kPadding),
        memory_(sizeof(Pixel) * stride_ * (height_ + 2 * kPadding)),
        pixels_(static_cast<Pixel*>(memory_.get())) {
    const int last = planes.image.channels - 1;
    const float *red = planes.channel(0), *green = planes.channel(std::min(1, last)),
                *blue = planes.channel(last);
    for (int y = 0; y < height_; ++y) {
      Pixel* row = pixels_ + at(0, y);
      const size_t begin = size_t(y) * width_;
      for (int x = 0; x < width_; ++x) {
        row[x] = Pixel{red[begin + x], green[begin + x], blue[begin + x], 0};
      }
      std::fill_n(row - kPadding, kPadding, black ? Pixel{} : row[0]);
      std::fill_n(row + width_, kPadding, black ? Pixel{} : row[width_ - 1]);
    }
    for (int i = 1; i <= kPadding; ++i) {
      pad_row(-i, 0, black);
      pad_row(height_ - 1 + i, height_ - 1, black);
    }
  }

  // Positions up to kPadding outside the image.
  int at(int x, int y) const { return (y + kPadding) * stride_ + x + kPadding; }
  int stride() const { return stride_; }
  const Pixel* data() const { return pixels_; }

 private:
  void pad_row(int y, int from, bool black) {
    Pixel* row = pixels_ + at(-kPadding, y);
    if (black) {
      std::fill_n(row, stride_, Pixel{});
    } else {
      std::copy_n(pixels_ + at(-kPadding, from), stride_, row);
    }
  }

  int height_, width_, stride_;
  PixelScratch memory_;
  Pixel* pixels_;
};

// Where the pixels of a span come from: the first tap, and the weights of the taps.
struct SpanTaps {
  int at[kSpan];
  float across[4][kSpan], down[4][kSpan];
  float outside[kSpan];  // 1 where the pixel is the fill
};

float bounded(float value, float least, float most) {
  value = value < least ? least : value;
  return value > most ? most : value;
}

void store(const Pixel (&span)[kSpan], const ImagePlanes& planes, int x, int y) {
  const int count = std::min(kSpan, planes.image.width - x);
  for (int c = 0; c < planes.image.channels; ++c) {
    float* to = planes.channel(c) + size_t(y) * planes.image.width + x;
    float values[kSpan];
    for (int i = 0; i < kSpan; ++i) values[i] = span[i][c];
    std::copy_n(values, count, to);
  }
}

void move_nearest(const ImagePlanes& planes, const Inverse& map) {
  const PixelGrid before(planes, /*black=*/true);
  const SourceGrid grid(planes.image, map);
  const int stride = before.stride(), origin = before.at(0, 0);
  const float width = grid.width(), height = grid.height();
  float columns[kSpan], rows[kSpan];
  int at[kSpan];
  Pixel moved[kSpan];
  for (int y = 0; y < planes.image.height; ++y) {
    for (int x = 0; x < planes.image.width; x += kSpan) {
      grid.compute(x, y, columns, rows);
      for (int i = 0; i < kSpan; ++i) {
        // One pixel outside is as black as those farther away.
        const float column = bounded(columns[i], -1, width), row = bounded(rows[i], -1, height);
        at[i] =
            origin + static_cast<int>(rounded(row)) * stride + static_cast<int>(rounded(column));
      }
      for (int i = 0; i < kSpan; ++i) moved[i] = before.data()[at[i]];
      store(moved, planes, x, y);
    }
  }
}

// Weights of the two pixels around a position that is d after the first of them, or of four by
// Pillow's cubic (a = -1).
template <int kCount>
void set_weights(float d, int i, float (&weights)[4][kSpan]) {
  if constexpr (kCount == 2) {
    weights[0][i] = 1 - d;
    weights[1][i] = d;
  } else {
    weights[0][i] = d * (-1 + d * (2 - d));
    weights[1][i] = 1 + d * d * (d - 2);
    weights[2][i] = d * (1 + d * (1 - d));
    weights[3][i] = d * d * (d - 1);
  }
}

// std::floor() without a call, so that loops are vectorized.
int floor_of(float value) {
  const int whole = static_cast<int>(value);
  return whole - (static_cast<float>(whole) > value ? 1 : 0);
}

// 1 if a position, in pixels from the centre of the first one, is not on the image.
float is_outside(float position, float size) {
  return position >= -0.5f ? (position < size - 0.5f ? 0.0f : 1.0f) : 1.0f;
}

template <int kCount>
void find_taps(const PixelGrid& pixels, const SourceGrid& grid, int x, int y, SpanTaps* taps) {
  constexpr int kBefore = kCount / 2 - 1;
  const int stride = pixels.stride(), origin = pixels.at(-kBefore, -kBefore);
  const float width = grid.width(), height = grid.height();
  float columns[kSpan], rows[kSpan];
  grid.compute(x, y, columns, rows);
  for (int i = 0; i < kSpan; ++i) {
    taps->outside[i] = is_outside(columns[i], width) + is_outside(rows[i], height);
  }
  for (int i = 0; i < kSpan; ++i) {
    // Farther outside there are only zeros, or the fill.
    const float column = bounded(columns[i], -3, width + 1), row = bounded(rows[i], -3, height + 1);
    const int left = floor_of(column), above = floor_of(row);
    set_weights<kCount>(column - static_cast<float>(left), i, taps->across);
    set_weights<kCount>(row - static_cast<float>(above), i, taps->down);
    taps->at[i] = origin + above * stride + left;
  }
}

template <int kCount>
Pixel filtered(const SpanTaps& taps, int i, const Pixel* from, int stride) {
  Pixel sum{};
  for (int j = 0; j < kCount; ++j) {
    Pixel line{};
    for (int k = 0; k < kCount; ++k) line += taps.across[k][i] * from[j * stride + k];
    sum += taps.down[j][i] * line;
  }
  sum = sum < 0.0f ? Pixel{} : sum;
  return sum > 1.0f ? Pixel{1, 1, 1, 1} : sum;
}

template <int kCount>
void move_filtered(const ImagePlanes& planes, const Inverse& map, const Sampling& sampling) {
  const bool black = sampling.outside == Sampling::Outside::kBlack;
  Pixel fill{};
  for (int c = 0; !black && c < planes.image.channels; ++c) {
    fill[c] = static_cast<float>(std::lrint(255 * planes.mean[c])) / 255;
  }
  const PixelGrid before(planes, black);
  const SourceGrid grid(planes.image, map);
  SpanTaps taps;
  Pixel moved[kSpan];
  for (int y = 0; y < planes.image.height; ++y) {
    for (int x = 0; x < planes.image.width; x += kSpan) {
      find_taps<kCount>(before, grid, x, y, &taps);
      for (int i = 0; i < kSpan; ++i) {
        moved[i] = filtered<kCount>(taps, i, before.data() + taps.at[i], before.stride());
        if (!black && taps.outside[i] != 0) moved[i] = fill;
      }
      store(moved, planes, x, y);
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
