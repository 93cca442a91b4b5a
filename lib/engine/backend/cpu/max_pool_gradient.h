// The gradient of a maximum over windows of an image in blocks of 8 or 16 channels. On AVX2, oneDNN
// takes 1.7 times as long as these loops.
#pragma once

#include "backend/cpu/dnnl_glue.h"
#include "ops/window.h"

namespace fleet::cpu {

class MaxPoolGradient {
 public:
  // Whether dx and dy are float32 in such blocks. workspace: the descriptor of the positions that
  // oneDNN's forward pass records, one byte per output if they fit.
  static bool is_for(const Argument& dx, const dnnl::memory::desc& workspace);

  // mask: those positions, row by row within a window. Arguments have the same blocks.
  static std::unique_ptr<Kernel> make(const Window& window, const Argument& dy,
                                      const Argument& mask, const Argument& dx);
};

}  // namespace fleet::cpu
