// The weight gradient of depthwise convolutions for which oneDNN has no fast implementation (2.6
// has none from 5 x 5 on): it would multiply matrices, one channel at a time.
#pragma once

#include "backend/cpu/convolution.h"

namespace fleet::cpu {

// x and dy are in blocks of 16 channels. Sums are float32, with the same bits for any number of
// threads.
class DepthwiseWeight {
 public:
  // Whether this convolution is supported: a square kernel of 3, 5 or 7, no dilation, and no fast
  // implementation in oneDNN.
  static bool is_for(const Convolution& convolution);

  // The required layouts of x, dy and dweight.
  static Layout image_layout(const Shape& image);
  static Layout weight_layout(const Shape& weight);

  // All arguments in these layouts. dbias may be missing.
  static std::unique_ptr<Kernel> make(const Convolution& convolution, const Argument& x,
                                      const Argument& dy, const Argument& dweight,
                                      const Argument& dbias);
};

}  // namespace fleet::cpu
