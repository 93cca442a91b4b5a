// Sizes of sliding windows: what convolutions and pooling share.
#pragma once

#include "graph/program.h"

namespace fleet {

struct Window {
  int64_t kernel[2], strides[2], paddings[2], dilations[2];  // height, width
  // Rows (d = 0) or columns (d = 1) a dilated kernel covers.
  int64_t extent(int d) const { return (kernel[d] - 1) * dilations[d] + 1; }
};

// Reads strides, paddings and dilations (1 where the operation has no such attribute) and checks
// them: two values each, strides and dilations from 1, paddings from 0.
Window window_of(const ShapeContext& context, int64_t kernel_height, int64_t kernel_width);
// The same for attributes that a shape rule has checked before.
Window window_of(const Attributes& attributes, int64_t kernel_height, int64_t kernel_width);

// How many windows fit, rounded down: floor((size + 2 padding - extent) / stride) + 1.
int64_t windows(const Window& window, int d, int64_t size);
// Rounded up, but every window begins in the image or its leading padding (PyTorch's rule).
int64_t windows_rounded_up(const Window& window, int d, int64_t size);

}  // namespace fleet
