// Decodes an image as training does, and reads every pixel.
#pragma once

#include <algorithm>

#include "data/decode.h"
#include "tests/fuzz/fuzz.h"

namespace fleet::fuzz {

inline void read_pixels(const data::Pixels& pixels, int channels) {
  require(pixels.width > 0 && pixels.height > 0, "a decoded region has pixels");
  require(pixels.step >= channels, "a pixel has its channels");
  unsigned sum = 0;
  for (int y = 0; y < pixels.height; ++y) {
    const uint8_t* row = pixels.data + y * pixels.stride;
    for (int x = 0; x < pixels.width * pixels.step; x += pixels.step) {
      for (int c = 0; c < channels; ++c) sum += row[x + c];
    }
  }
  use(sum);
}

// The whole image, and a part of it made smaller. Images of more than kMaxPixels are not decoded:
// a header may claim 16384 x 16384, which takes seconds.
inline void decode_image(std::string_view bytes) {
  constexpr int64_t kMaxPixels = 1 << 20;
  const std::span<const uint8_t> image(reinterpret_cast<const uint8_t*>(bytes.data()),
                                       bytes.size());
  data::Decoder decoder;
  for (const int channels : {3, 1}) {
    for (const bool part : {false, true}) {
      if (!decoder.open(image, channels)) return;
      const int height = decoder.height(), width = decoder.width();
      require(height > 0 && width > 0, "an image that was opened has pixels");
      if (int64_t{height} * width > kMaxPixels) return;
      const int x = part ? width / 3 : 0, y = part ? height / 3 : 0;
      const int across = std::max(part ? width / 2 : width, 1);
      const int down = std::max(part ? height / 2 : height, 1);
      data::CropGeometry place{.source_height = height,
                               .source_width = width,
                               .out_height = part ? 8 : down,
                               .out_width = part ? 8 : across,
                               .x = double(x),
                               .y = double(y),
                               .width = double(across),
                               .height = double(down),
                               .tap_x = x,
                               .tap_y = y,
                               .tap_width = across,
                               .tap_height = down};
      data::Pixels pixels;
      if (decoder.read(place, &pixels)) read_pixels(pixels, channels);
    }
  }
}

}  // namespace fleet::fuzz
