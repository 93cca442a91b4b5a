#include "data/encode_image.h"

// clang-format off
#include <cstdio>  // before jpeglib.h, which uses FILE
#include <jpeglib.h>
// clang-format on

#include <csetjmp>
#include <cstdlib>

#include "base/error.h"

namespace fleet::data {
namespace {

struct ErrorManager {
  jpeg_error_mgr base;
  std::jmp_buf escape;
};

[[noreturn]] void on_error(j_common_ptr info) {
  std::longjmp(reinterpret_cast<ErrorManager*>(info->err)->escape, 1);
}

struct Picture {
  const uint8_t* pixels;
  int height, width, channels, quality;
};

// Without objects that have destructors: libjpeg exits through longjmp on errors. The caller frees
// *bytes.
bool encode(const Picture& picture, unsigned char** bytes, unsigned long* size) {
  jpeg_compress_struct info;
  ErrorManager errors;
  info.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = on_error;
  if (setjmp(errors.escape) != 0) {
    jpeg_destroy_compress(&info);
    return false;
  }
  jpeg_create_compress(&info);
  jpeg_mem_dest(&info, bytes, size);
  info.image_height = static_cast<JDIMENSION>(picture.height);
  info.image_width = static_cast<JDIMENSION>(picture.width);
  info.input_components = picture.channels;
  info.in_color_space = picture.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, picture.quality, TRUE);
  info.optimize_coding = TRUE;
  jpeg_start_compress(&info, TRUE);
  const size_t stride = size_t(picture.width) * picture.channels;
  while (info.next_scanline < info.image_height) {
    auto* row = const_cast<JSAMPROW>(picture.pixels + info.next_scanline * stride);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  return true;
}

}  // namespace

std::string encode_jpeg(const std::vector<uint8_t>& pixels, int height, int width, int channels,
                        int quality) {
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  const bool done = encode({pixels.data(), height, width, channels, quality}, &bytes, &size);
  std::string text;
  if (done) text.assign(reinterpret_cast<const char*>(bytes), size);
  std::free(bytes);
  FLEET_CHECK(
      done, "libjpeg refuses an image of " + std::to_string(width) + "x" + std::to_string(height));
  return text;
}

}  // namespace fleet::data
