// The notes of a camera in a JPEG file (EXIF 2.32, TIFF 6.0).
#pragma once

#include <cstdint>
#include <span>

namespace fleet::data {

// How the stored pixels must be turned or mirrored to be upright: 1 (they are upright, or nothing
// is noted) to 8. file: a JPEG file or its beginning; of any other content 1.
int exif_orientation(std::span<const uint8_t> file);

}  // namespace fleet::data
