// Winograd's minimal filtering F(4x4, 3x3): 36 multiplications per tile of 4 x 4 outputs instead of
// 144 (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015). oneDNN has it in
// float32 for AVX-512, for all three directions.
//
// Rounding error for normally distributed inputs, compared with double: below 2e-6 of the outputs'
// root mean square; the direct method's is below 1e-6 (Winograd.MatchesTheDefinition prints both).
#pragma once

#include "backend/cpu/convolution.h"

namespace fleet::cpu {

// Whether Winograd is allowed and faster than the direct method, where oneDNN has both. Depends on
// the shapes only, not on a measurement: a resumed or repeated run computes the same bits.
bool prefers_winograd(const Convolution& convolution);

}  // namespace fleet::cpu
