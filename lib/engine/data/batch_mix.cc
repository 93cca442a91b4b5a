#include <cstring>

#include "data/batch_slot.h"

namespace fleet::data {
namespace {

// Calls body(image, other) from the last image to the first, so that `other` is still unchanged.
template <typename T, typename Body>
void each_pair(T* images, int64_t count, size_t one, const T* before, const Body& body) {
  for (int64_t i = count - 1; i >= 0; --i) {
    T* image = images + i * one;
    body(image, i == 0 ? before : image - one);
  }
}

// Copies elements [from, from + length) of rows [top, bottom), each of `row` elements.
template <typename T>
void copy_box(T* to, const T* other, int64_t row, int64_t from, int64_t length, int top,
              int bottom) {
  for (int64_t y = top; y < bottom; ++y) {
    std::memcpy(to + y * row + from, other + y * row + from, length * sizeof(T));
  }
}

}  // namespace

void mix_images(float* images, int64_t count, const float* before, const ImageShape& image,
                const BatchMix& mix) {
  const size_t one = image.count(), plane = size_t(image.height) * image.width;
  const float own = mix.own, rest = 1 - mix.own;
  each_pair(images, count, one, before, [&](float* to, const float* other) {
    if (!mix.cuts) {
      for (size_t i = 0; i < one; ++i) to[i] = to[i] * own + other[i] * rest;
      return;
    }
    for (int c = 0; c < image.channels; ++c) {
      copy_box(to + c * plane, other + c * plane, image.width, mix.left, mix.right - mix.left,
               mix.top, mix.bottom);
    }
  });
}

void mix_images(uint8_t* images, int64_t count, const uint8_t* before, const ImageShape& image,
                int64_t step, const BatchMix& mix) {
  const size_t one = size_t(image.height) * image.width * step;
  const float own = mix.own, rest = 1 - mix.own;
  each_pair(images, count, one, before, [&](uint8_t* to, const uint8_t* other) {
    if (!mix.cuts) {
      for (size_t i = 0; i < one; ++i) {
        const float value = static_cast<float>(to[i]) * own + static_cast<float>(other[i]) * rest;
        // Never negative, and lround() does not vectorize.
        // NOLINTNEXTLINE(bugprone-incorrect-roundings)
        to[i] = static_cast<uint8_t>(value + 0.5f);
      }
      return;
    }
    copy_box(to, other, image.width * step, mix.left * step, (mix.right - mix.left) * step, mix.top,
             mix.bottom);
  });
}

}  // namespace fleet::data
