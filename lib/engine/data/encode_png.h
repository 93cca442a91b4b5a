// Writes PNG images.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace fleet::data {

// The bytes of a PNG file. pixels: height x width x channels, 1 (grey) or 3 (RGB). "" if libpng
// fails.
std::string encode_png(std::span<const uint8_t> pixels, int height, int width, int channels);

}  // namespace fleet::data
