// Encodes pixels as JPEG, for fleetrun pack.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fleet::data {

// pixels: height x width x channels (1 grey, 3 RGB), 1..65500 each. quality: 1 to 100, as
// libjpeg's; colours are stored at half resolution. kInternal if libjpeg refuses them.
std::string encode_jpeg(const std::vector<uint8_t>& pixels, int height, int width, int channels,
                        int quality);

}  // namespace fleet::data
