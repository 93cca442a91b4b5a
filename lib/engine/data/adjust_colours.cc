#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "data/adjust_image.h"

namespace fleet::data {
namespace {

constexpr float kRed = 0.2989f, kGreen = 0.587f, kBlue = 0.114f;  // ITU-R BT.601, as torchvision

// Loops are vectorized if they always write, call nothing, and keep sums and extremes in lanes.
constexpr size_t kLanes = 16;

float unit(float value) { return std::clamp(value, 0.0f, 1.0f); }

// pillow: with the weights and the rounding of its conversion to 8 bits of grey.
template <bool pillow = false>
float grey(const ImagePlanes& p, size_t count, size_t i) {
  if (p.image.channels == 1) return p.pixels[i];
  if constexpr (pillow) {
    constexpr float kOne = 65536;
    return as_byte(19595 / kOne * p.pixels[i] + 38470 / kOne * p.pixels[count + i] +
                   7471 / kOne * p.pixels[2 * count + i]);
  }
  return kRed * p.pixels[i] + kGreen * p.pixels[count + i] + kBlue * p.pixels[2 * count + i];
}

// In an order that does not depend on the processor.
template <bool pillow>
double sum_of_grey(const ImagePlanes& p) {
  const size_t count = p.plane();
  double lanes[kLanes] = {}, sum = 0;
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t k = 0; k < kLanes; ++k) lanes[k] += grey<pillow>(p, count, i + k);
  }
  for (; i < count; ++i) sum += grey<pillow>(p, count, i);
  for (const double lane : lanes) sum += lane;
  return sum;
}

struct Extremes {
  float least, most;
};

Extremes extremes_of(const float* values, size_t count) {
  float least[kLanes], most[kLanes];
  std::fill_n(least, kLanes, values[0]);
  std::fill_n(most, kLanes, values[0]);
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t k = 0; k < kLanes; ++k) {
      const float value = values[i + k];
      least[k] = value < least[k] ? value : least[k];
      most[k] = value > most[k] ? value : most[k];
    }
  }
  for (; i < count; ++i) {
    least[0] = std::min(least[0], values[i]);
    most[0] = std::max(most[0], values[i]);
  }
  return {*std::min_element(least, least + kLanes), *std::max_element(most, most + kLanes)};
}

// Equal neighbours count in different tables: adding to the same number waits for the last
// addition.
std::array<int64_t, 256> histogram_of(const std::vector<uint8_t>& bytes) {
  uint32_t parts[4][256] = {};
  size_t i = 0;
  for (; i + 4 <= bytes.size(); i += 4) {
    for (size_t k = 0; k < 4; ++k) ++parts[k][bytes[i + k]];
  }
  for (; i < bytes.size(); ++i) ++parts[0][bytes[i]];
  std::array<int64_t, 256> sums{};
  for (size_t value = 0; value < sums.size(); ++value) {
    for (const auto& part : parts) sums[value] += part[value];
  }
  return sums;
}

}  // namespace

void adjust_brightness(const ImagePlanes& p, float factor) {
  for (size_t i = 0; i < p.image.count(); ++i) p.pixels[i] = unit(p.pixels[i] * factor);
}

void adjust_contrast(const ImagePlanes& p, float factor, Steps steps) {
  const size_t count = p.plane();
  const bool bytes = steps == Steps::kBytes;
  const double sum = bytes ? sum_of_grey<true>(p) : sum_of_grey<false>(p);
  const auto mean = static_cast<float>(sum / static_cast<double>(count));
  const float rest = (1 - factor) * (bytes ? as_byte(mean) : mean);
  for (size_t i = 0; i < p.image.count(); ++i) p.pixels[i] = unit(p.pixels[i] * factor + rest);
}

template <bool pillow>
static void saturate(const ImagePlanes& p, float factor) {
  const size_t count = p.plane();
  for (size_t i = 0; i < count; ++i) {
    const float rest = (1 - factor) * grey<pillow>(p, count, i);
    for (int c = 0; c < 3; ++c) {
      float& value = p.pixels[c * count + i];
      value = unit(value * factor + rest);
    }
  }
}

void adjust_saturation(const ImagePlanes& p, float factor, Steps steps) {
  if (p.image.channels != 3) return;
  steps == Steps::kBytes ? saturate<true>(p, factor) : saturate<false>(p, factor);
}

// Rotates the hue by `turn` of the colour circle, keeping HSV's saturation and value.
void adjust_hue(const ImagePlanes& p, float turn) {
  const size_t count = p.plane();
  for (size_t i = 0; i < count; ++i) {
    float& r = p.pixels[i];
    float& g = p.pixels[count + i];
    float& b = p.pixels[2 * count + i];
    const float high = std::max({r, g, b}), range = high - std::min({r, g, b});
    if (range <= 0) continue;
    float sixth = high == r   ? (g - b) / range
                  : high == g ? 2 + (b - r) / range
                              : 4 + (r - g) / range;
    sixth += 6 * turn + 12;
    const auto channel = [&](float offset) {
      const float k = std::fmod(offset + sixth, 6.0f);
      return high - range * std::clamp(std::min(k, 4 - k), 0.0f, 1.0f);
    };
    const float red = channel(5), green = channel(3), blue = channel(1);
    r = red, g = green, b = blue;
  }
}

template <bool pillow>
static void sharpen(const ImagePlanes& p, float factor) {
  const int height = p.image.height, width = p.image.width;
  if (height <= 2 || width <= 2) return;
  constexpr float kAround = 1.0f / 13, kHere = 5.0f / 13;
  // The rows above and here before they were changed.
  std::vector<float> above(width), here(width);
  for (int c = 0; c < p.image.channels; ++c) {
    float* row = p.channel(c);
    std::copy_n(row, width, above.begin());
    for (int y = 1; y + 1 < height; ++y) {
      row += width;
      const float* below = row + width;
      std::copy_n(row, width, here.begin());
      for (int x = 1; x + 1 < width; ++x) {
        const float around = above[x - 1] + above[x] + above[x + 1] + here[x - 1] + here[x + 1] +
                             below[x - 1] + below[x] + below[x + 1];
        const float mean = around * kAround + here[x] * kHere;
        const float blurred = pillow ? as_byte(mean) : mean;
        row[x] = unit(here[x] + (1 - factor) * (blurred - here[x]));
      }
      // The outermost columns are clamped, as torchvision's are.
      row[0] = unit(row[0]);
      row[width - 1] = unit(row[width - 1]);
      above.swap(here);
    }
  }
}

void adjust_sharpness(const ImagePlanes& p, float factor, Steps steps) {
  steps == Steps::kBytes ? sharpen<true>(p, factor) : sharpen<false>(p, factor);
}

void posterize(const ImagePlanes& p, int bits) {
  const auto levels = static_cast<float>(1 << bits);
  for (size_t i = 0; i < p.image.count(); ++i) {
    // No value is negative, so that this is its floor.
    const auto level = static_cast<float>(static_cast<int>(p.pixels[i] * levels));
    p.pixels[i] = std::clamp(level, 0.0f, levels - 1) * (1 / levels);
  }
}

void solarize(const ImagePlanes& p, float threshold) {
  for (size_t i = 0; i < p.image.count(); ++i) {
    const float value = p.pixels[i];
    const float from = value >= threshold ? 1.0f : 0.0f, sign = value >= threshold ? -1.0f : 1.0f;
    p.pixels[i] = from + sign * value;
  }
}

void solarize_add(const ImagePlanes& p, float more) {
  constexpr float kHalf = 127.5f / 255;  // between two values of 8 bits
  for (size_t i = 0; i < p.image.count(); ++i) {
    const float value = p.pixels[i], lighter = std::min(value + more, 1.0f);
    p.pixels[i] = value < kHalf ? lighter : value;
  }
}

void invert(const ImagePlanes& p) {
  for (size_t i = 0; i < p.image.count(); ++i) p.pixels[i] = 1 - p.pixels[i];
}

void make_grey(const ImagePlanes& p) {
  const size_t count = p.plane();
  for (size_t i = 0; i < count; ++i) {
    const float value = grey(p, count, i);
    for (int c = 0; c < p.image.channels; ++c) p.pixels[c * count + i] = value;
  }
}

void autocontrast(const ImagePlanes& p) {
  const size_t count = p.plane();
  for (int c = 0; c < p.image.channels; ++c) {
    float* values = p.channel(c);
    const auto [least, most] = extremes_of(values, count);
    const float range = most - least;
    if (range == 0) continue;
    for (size_t i = 0; i < count; ++i) values[i] = unit((values[i] - least) / range);
  }
}

void equalize(const ImagePlanes& p) {
  const size_t count = p.plane();
  std::vector<uint8_t> bytes(count);
  for (int c = 0; c < p.image.channels; ++c) {
    float* values = p.channel(c);
    for (size_t i = 0; i < count; ++i) {
      bytes[i] = static_cast<uint8_t>(static_cast<int>(unit(values[i]) * 255.999f));
    }
    const std::array<int64_t, 256> histogram = histogram_of(bytes);
    int last = 255;
    while (histogram[last] == 0) --last;
    const int64_t step = (static_cast<int64_t>(count) - histogram[last]) / 255;
    std::array<float, 256> table{};
    int64_t below = 0;
    for (int i = 0; i < 256; ++i) {
      const int64_t level = step == 0 ? i : std::min<int64_t>((below + step / 2) / step, 255);
      table[i] = static_cast<float>(level) / 255;
      below += histogram[i];
    }
    for (size_t i = 0; i < count; ++i) values[i] = table[bytes[i]];
  }
}

}  // namespace fleet::data
