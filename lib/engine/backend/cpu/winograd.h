// Winograd's minimal filtering F(4x4, 3x3): 36 multiplications per tile of 4 x 4 outputs instead of
// 144 (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015), in float32 and
// all three directions. oneDNN has it for AVX-512. For AVX2 there are loops of our own
// (winograd_loops.inc), with the same points of interpolation: 0, 5/8, -5/8, 3/2, -3/2, infinity.
//
// Rounding error for normally distributed inputs, compared with double: below 2e-6 of the outputs'
// root mean square; the direct method's is below 1e-6 (Winograd.MatchesTheDefinition prints both).
#pragma once

#include "backend/cpu/convolution.h"

namespace fleet::cpu {

// Whether Winograd is allowed and faster than the direct method. Depends on the shapes and on whose
// loops there are, not on a measurement: a resumed or repeated run computes the same bits.
bool prefers_winograd(const Convolution& convolution);

// The convolutions that prefer Winograd's method and have it in our own loops.
class OwnWinograd {
 public:
  static bool is_for(const Convolution& convolution);

  // The required layouts, and the workspace.
  static ConvolutionChoice choice(const Convolution& convolution);

  // All arguments in these layouts. bias may be missing.
  static std::unique_ptr<Kernel> make(const Convolution& convolution, const Argument& x,
                                      const Argument& weight, const Argument& bias,
                                      const Argument& y, void* workspace);
};

// The loops' view of a convolution. Images are [images, channels / L, height, width, L], weights
// [filters / L, channels / L, 3, 3, L of the channels, L of the filters], for vectors of L floats.
struct WinogradImage {
  int64_t channels = 0, height = 0, width = 0;  // channels: whole vectors
  int64_t pixels() const { return height * width; }
  int64_t elements() const { return channels * height * width; }
};

// `to` is `from` convolved with the weights. For the data gradient `from` is dy, `to` is dx, and
// the weights are turned by 180 degrees with their axes exchanged.
struct WinogradConvolution {
  int64_t images = 0;
  WinogradImage from, to;
  int64_t padding[2] = {0, 0};  // of `from`; may be negative
  bool turned = false;

  int64_t tiles_of(int64_t outputs) const { return (outputs + 3) / 4; }
  int64_t tiles_of_image() const { return tiles_of(to.height) * tiles_of(to.width); }
  int64_t tiles() const { return images * tiles_of_image(); }
};

// Results do not depend on the number of threads.
struct WinogradRuns {
  int64_t lanes = 0;  // floats of a vector; 0: this build or processor does not have the loops
  // Bytes of `memory`, and what images() may need in addition on each thread.
  int64_t (*images_bytes)(const WinogradConvolution&) = nullptr;
  int64_t (*thread_bytes)(const WinogradConvolution&) = nullptr;
  int64_t (*weights_bytes)(const WinogradConvolution&) = nullptr;
  // bias: null, or to.channels values.
  void (*images)(const WinogradConvolution&, const float* from, const float* weight,
                 const float* bias, float* to, float* memory) = nullptr;
  // The gradient of the weights by that of `to`.
  void (*weights)(const WinogradConvolution&, const float* from, const float* slope, float* weight,
                  float* memory) = nullptr;
};

namespace avx2 {
WinogradRuns winograd_runs();
}

}  // namespace fleet::cpu
