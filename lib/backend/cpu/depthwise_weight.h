// The weight's gradient of depthwise convolutions that oneDNN has no proper implementation for (2.6
// has none from 5 x 5 on): it would multiply matrices, a channel at a time.
#pragma once

#include "backend/cpu/convolution.h"

namespace fleet::cpu {

// Of x and dy in blocks of 16 channels. Sums are float32; the same bits for any number of threads.
class DepthwiseWeight {
 public:
  // Whether it is for this convolution: a square kernel of 3, 5 or 7, no dilation, and nothing fast
  // in oneDNN.
  static bool is_for(const Convolution& convolution);

  // What x, dy and dweight have to lie in.
  static Layout image_layout(const Shape& image);
  static Layout weight_layout(const Shape& weight);

  // All in these layouts. dbias may be missing.
  static std::unique_ptr<Kernel> make(const Convolution& convolution, const Argument& x,
                                      const Argument& dy, const Argument& dweight,
                                      const Argument& dbias);
};

}  // namespace fleet::cpu
