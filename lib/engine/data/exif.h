// The notes of a camera in a JPEG file (EXIF 2.32, TIFF 6.0).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/decode.h"

namespace fleet::data {

// How the stored pixels must be turned or mirrored to be upright: 1 (they are upright, or nothing
// is noted) to 8. file: a JPEG file or its beginning; of any other content 1.
int exif_orientation(std::span<const uint8_t> file);
// Whether upright pixels have the stored height as their width.
inline bool on_its_side(int orientation) { return orientation >= 5; }
// Turns and mirrors the pixels of a whole image into *memory, and lets *pixels point there.
void turn_upright(int orientation, std::vector<uint8_t>* memory, Pixels* pixels);

}  // namespace fleet::data
