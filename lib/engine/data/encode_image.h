// Encodes pixels as JPEG (for fleetrun pack) and PNG.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fleet::data {

// A JPEG file. pixels: height x width x channels (1 grey, 3 RGB), 1..65500 each. quality: 1 to 100,
// as libjpeg's; colours are stored at half resolution. kInternal if libjpeg refuses them.
std::string encode_jpeg(const std::vector<uint8_t>& pixels, int height, int width, int channels,
                        int quality);

// The bytes of a PNG file. pixels: height x width x channels, 1 (grey) or 3 (RGB). "" if libpng
// fails.
std::string encode_png(std::span<const uint8_t> pixels, int height, int width, int channels);

// A PNG file with a palette, that of Pascal VOC. numbers: height x width, one a pixel. "" if libpng
// fails.
std::string encode_index_png(std::span<const uint8_t> numbers, int height, int width);

}  // namespace fleet::data
