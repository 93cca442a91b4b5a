// Small pictures of samples, for reports.
#pragma once

#include <cstdint>
#include <string>

#include "data/source.h"

namespace fleet::data {

// A JPEG file of a source's image whose longer side has at most `side` pixels; it is never
// enlarged. upright: as for Decoder. "" if the sample has no image, or a damaged one.
std::string thumbnail(const Source& source, int64_t index, int side, bool upright);

}  // namespace fleet::data
