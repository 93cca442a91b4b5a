// A maximum over windows of an image in blocks of 8 or 16 channels, with its positions. On AVX2,
// oneDNN takes several times as long as these loops.
#pragma once

#include "exec/kernel.h"
#include "ops/window.h"

namespace fleet::cpu {

class MaxPoolForward {
 public:
  // For the images of MaxPoolGradient::is_for(). mask: the position of each maximum, row by row
  // within its window; the first of equal ones. A NaN is a maximum, as in PyTorch.
  static std::unique_ptr<Kernel> make(const Window& window, const Argument& x, const Argument& y,
                                      uint8_t* mask);
};

}  // namespace fleet::cpu
