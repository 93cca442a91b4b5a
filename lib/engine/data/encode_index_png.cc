#include <png.h>

#include <array>

#include "data/encode_image.h"

namespace fleet::data {
namespace {

constexpr size_t kColours = 256;

// The colours of Pascal VOC: bits of a class become high bits of red, green and blue, in turn.
std::array<uint8_t, 3 * kColours> voc_palette() {
  std::array<uint8_t, 3 * kColours> palette{};
  for (size_t number = 0; number < kColours; ++number) {
    size_t left = number;
    for (int bit = 7; left != 0; --bit, left >>= 3) {
      for (size_t c = 0; c < 3; ++c) {
        palette[3 * number + c] |= static_cast<uint8_t>((left >> c & 1) << bit);
      }
    }
  }
  return palette;
}

}  // namespace

std::string encode_index_png(std::span<const uint8_t> numbers, int height, int width) {
  static const std::array<uint8_t, 3 * kColours> palette = voc_palette();
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = PNG_FORMAT_RGB_COLORMAP;
  image.colormap_entries = kColours;
  if (numbers.size() < size_t(height) * width) return {};
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string bytes(size, '\0');
  if (png_image_write_to_memory(&image, bytes.data(), &size, 0, numbers.data(), 0,
                                palette.data()) == 0) {
    return {};
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace fleet::data
