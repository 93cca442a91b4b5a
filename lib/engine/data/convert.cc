// Copies pixels to float planes without resizing, and planes to bytes.
#include <algorithm>
#include <cmath>

#include "data/resize.h"

namespace fleet::data {
namespace {

template <int kStep>
void convert(const uint8_t* from, int count, float scale, float bias, float* to) {
  for (int i = 0; i < count; ++i) to[i] = static_cast<float>(from[i * kStep]) * scale + bias;
}

}  // namespace

bool is_copy(const CropGeometry& p) {
  return p.width == p.out_width && p.height == p.out_height && p.x == std::floor(p.x) &&
         p.y == std::floor(p.y);
}

void copy_pixels(const Pixels& pixels, const CropGeometry& p, int channels, const float* scale,
                 const float* bias, float* out) {
  // The part of each output row that lies within the image.
  const int left = static_cast<int>(p.x), top = static_cast<int>(p.y);
  const int first = std::clamp(-left, 0, p.out_width);
  const int end = std::clamp(p.source_width - left, first, p.out_width);
  for (int c = 0; c < channels; ++c) {
    float* to = out + int64_t{c} * p.out_height * p.out_width;
    const float outside = static_cast<float>(p.fill[c]) * scale[c] + bias[c];
    for (int y = 0; y < p.out_height; ++y, to += p.out_width) {
      const int row = top + y;
      if (row < 0 || row >= p.source_height) {
        std::fill_n(to, p.out_width, outside);
        continue;
      }
      const uint8_t* from = pixels.data + (row - pixels.y) * pixels.stride +
                            int64_t{left + first - pixels.x} * pixels.step + c;
      std::fill(to, to + first, outside);
      switch (pixels.step) {
        case 1:
          convert<1>(from, end - first, scale[c], bias[c], to + first);
          break;
        case 3:
          convert<3>(from, end - first, scale[c], bias[c], to + first);
          break;
        default:
          convert<4>(from, end - first, scale[c], bias[c], to + first);
          break;
      }
      std::fill(to + end, to + p.out_width, outside);
      if (p.flip) std::reverse(to, to + p.out_width);
    }
  }
}

void scale_plane(float* plane, size_t count, float scale, float bias) {
  for (size_t i = 0; i < count; ++i) plane[i] = plane[i] * scale + bias;
}

void planes_to_bytes(const float* planes, const ImageShape& image, float scale, uint8_t* bytes) {
  const size_t plane = size_t(image.height) * image.width;
  const auto rounded = [=](size_t at) {
    // Never negative, and lround() does not vectorize.
    // NOLINTNEXTLINE(bugprone-incorrect-roundings)
    return static_cast<uint8_t>(
        static_cast<int>(std::clamp(planes[at] * scale, 0.0f, 255.0f) + 0.5f));
  };
  if (image.channels == 1) {
    for (size_t i = 0; i < plane; ++i) bytes[i] = rounded(i);
    return;
  }
  for (size_t i = 0; i < plane; ++i) {
    bytes[4 * i] = rounded(i);
    bytes[4 * i + 1] = rounded(i + plane);
    bytes[4 * i + 2] = rounded(i + 2 * plane);
    bytes[4 * i + 3] = 0;
  }
}

}  // namespace fleet::data
