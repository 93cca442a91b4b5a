// Winograd's minimal filtering F(4x4, 3x3): 36 multiplications a tile of 4 x 4 outputs instead of
// 144 (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015). oneDNN has it in
// float32 for AVX-512, of all three directions.
//
// Rounding of normal inputs, beside a double's result: below 2e-6 of the outputs' root mean square,
// the direct method's below 1e-6 (Winograd.MatchesTheDefinition prints both).
#pragma once

#include "backend/cpu/convolution.h"

namespace fleet::cpu {

// Whether it is wanted and faster than the direct method where oneDNN has both. The shapes alone
// decide, not a measurement: a run that is resumed, or repeated, computes the same bits.
bool prefers_winograd(const Convolution& convolution);

}  // namespace fleet::cpu
