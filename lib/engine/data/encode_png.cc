#include <png.h>

#include "data/encode_image.h"

namespace fleet::data {

std::string encode_png(std::span<const uint8_t> pixels, int height, int width, int channels) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  if (pixels.size() < PNG_IMAGE_SIZE(image)) return {};
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string bytes(size, '\0');
  if (png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels.data(), 0, nullptr) == 0) {
    return {};
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace fleet::data
