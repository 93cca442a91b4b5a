// Separable blurs with symmetric weights.
#include <algorithm>
#include <cmath>
#include <vector>

#include "data/adjust_image.h"
#include "data/pixel_scratch.h"

namespace fleet::data {
namespace {

enum class Edges {
  kReflected,
  kRepeated,  // as Pillow, which also rounds each line to 8 bits
};

// The position within [0, size) that stands for `at`, which is less than a size outside.
int64_t within(int64_t at, int64_t size, Edges edges) {
  if (edges == Edges::kRepeated) return std::clamp<int64_t>(at, 0, size - 1);
  if (at < 0) at = -at;
  return at < size ? at : 2 * (size - 1) - at;
}

// weights[k] counts for the pixels k before and after.
using Weights = std::vector<float>;

// Taps of one output each: pair(k, x) is the sum of those k before and after it.
template <int reach, typename Pair>
void blur_line(const Weights& weights, const float* here, const Pair& pair, int64_t width,
               float* __restrict to) {
  for (int64_t x = 0; x < width; ++x) {
    float sum = weights[0] * here[x];
    for (int k = 1; k <= reach; ++k) sum += weights[k] * pair(k, x);
    to[x] = sum;
  }
}

// Loops of known length for the short blurs, which are the common ones.
template <typename Pair>
void blur_line(const Weights& weights, const float* here, const Pair& pair, int64_t width,
               float* __restrict to) {
  switch (std::ssize(weights)) {
    case 2:
      return blur_line<1>(weights, here, pair, width, to);
    case 3:
      return blur_line<2>(weights, here, pair, width, to);
    default:
      break;
  }
  for (int64_t x = 0; x < width; ++x) to[x] = weights[0] * here[x];
  for (int64_t k = 1; k < std::ssize(weights); ++k) {
    for (int64_t x = 0; x < width; ++x) to[x] += weights[k] * pair(k, x);
  }
}

void round_line(Edges edges, int64_t width, float* line) {
  if (edges != Edges::kRepeated) return;
  for (int64_t x = 0; x < width; ++x) line[x] = as_byte(line[x]);
}

void blur_rows(float* pixels, int64_t height, int64_t width, const Weights& weights, Edges edges) {
  const auto reach = std::ssize(weights) - 1;
  std::vector<float> line(width + 2 * reach);
  for (int64_t y = 0; y < height; ++y, pixels += width) {
    for (int64_t x = -reach; x < 0; ++x) line[x + reach] = pixels[within(x, width, edges)];
    std::copy_n(pixels, width, line.begin() + reach);
    for (int64_t x = width; x < width + reach; ++x) {
      line[x + reach] = pixels[within(x, width, edges)];
    }
    const float* here = line.data() + reach;
    const auto pair = [here](int64_t k, int64_t x) { return here[x - k] + here[x + k]; };
    blur_line(weights, here, pair, width, pixels);
    round_line(edges, width, pixels);
  }
}

void blur_columns(float* pixels, int64_t height, int64_t width, const Weights& weights,
                  Edges edges) {
  const PixelScratch before(sizeof(float) * height * width);
  std::copy_n(pixels, height * width, before.floats());
  const auto row = [&](int64_t y) { return before.floats() + within(y, height, edges) * width; };
  std::vector<const float*> above(weights.size()), below(weights.size());
  for (int64_t y = 0; y < height; ++y, pixels += width) {
    for (int64_t k = 0; k < std::ssize(weights); ++k) above[k] = row(y - k), below[k] = row(y + k);
    const float *const *up = above.data(), *const *down = below.data();
    const auto pair = [up, down](int64_t k, int64_t x) { return up[k][x] + down[k][x]; };
    blur_line(weights, row(y), pair, width, pixels);
    round_line(edges, width, pixels);
  }
}

// The box of Pillow's blur, with a part of a pixel at each end.
Weights box_weights(double sigma, int passes) {
  const double variance = sigma * sigma / passes;
  const double whole = std::floor((std::sqrt(12 * variance + 1) - 1) / 2);
  const double part = (2 * whole + 1) * (whole * (whole + 1) - 3 * variance) /
                      (6 * (variance - (whole + 1) * (whole + 1)));
  const double length = 2 * (whole + part) + 1;
  Weights weights(static_cast<size_t>(whole) + 2, static_cast<float>(1 / length));
  weights.back() = static_cast<float>(part / length);
  return weights;
}

}  // namespace

void gaussian_blur(const ImagePlanes& planes, int kernel_size, double sigma) {
  Weights weights(kernel_size / 2 + 1);
  double sum = 0;
  for (size_t k = 0; k < weights.size(); ++k) {
    const double weight = std::exp(-0.5 * std::pow(static_cast<double>(k) / sigma, 2));
    weights[k] = static_cast<float>(weight);
    sum += k == 0 ? weight : 2 * weight;
  }
  for (float& weight : weights) weight /= static_cast<float>(sum);
  for (int c = 0; c < planes.image.channels; ++c) {
    float* pixels = planes.channel(c);
    blur_rows(pixels, planes.image.height, planes.image.width, weights, Edges::kReflected);
    blur_columns(pixels, planes.image.height, planes.image.width, weights, Edges::kReflected);
  }
}

void blur_like_pillow(const ImagePlanes& planes, double radius) {
  constexpr int kPasses = 3;
  const Weights weights = box_weights(radius, kPasses);
  for (int c = 0; c < planes.image.channels; ++c) {
    float* pixels = planes.channel(c);
    for (int pass = 0; pass < kPasses; ++pass) {
      blur_rows(pixels, planes.image.height, planes.image.width, weights, Edges::kRepeated);
    }
    for (int pass = 0; pass < kPasses; ++pass) {
      blur_columns(pixels, planes.image.height, planes.image.width, weights, Edges::kRepeated);
    }
  }
}

}  // namespace fleet::data
