// Small pictures of samples, for reports.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "data/source.h"

namespace fleet::data {

// Whether a pixel of the source's image (its height and width, then row and column) is painted red.
using MarkedPixel = std::function<bool(int height, int width, double y, double x)>;

// A JPEG file of a source's image whose longer side has at most `side` pixels; it is never
// enlarged. upright: as for Decoder. "" if the sample has no image, or a damaged one. is_marked:
// may be null.
std::string thumbnail(const Source& source, int64_t index, int side, bool upright,
                      const MarkedPixel& is_marked = nullptr);

}  // namespace fleet::data
