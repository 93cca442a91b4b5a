// Sizes of sliding windows, shared by convolutions and pooling.
#pragma once

#include "graph/program.h"

namespace fleet {

struct Window {
  int64_t kernel[2], strides[2], paddings[2], dilations[2];  // height, width
  int64_t ends[2];  // the padding behind the last row and column; paddings: in front of the first
  // Rows (d = 0) or columns (d = 1) that a dilated kernel covers.
  int64_t extent(int d) const { return (kernel[d] - 1) * dilations[d] + 1; }
  bool is_symmetric() const { return paddings[0] == ends[0] && paddings[1] == ends[1]; }
};

// Reads strides, paddings and dilations (1 if the operation has no such attribute) and checks them:
// two values each, strides and dilations at least 1, paddings at least 0. With `ends`, four
// paddings are accepted too, each smaller than the window: top, left, bottom, right.
Window window_of(const ShapeContext& context, int64_t kernel_height, int64_t kernel_width,
                 bool ends = false);
// Like the above, for attributes that a shape rule has already checked.
Window window_of(const Attributes& attributes, int64_t kernel_height, int64_t kernel_width);

// The number of windows that fit, rounded down: floor((size + paddings - extent) / stride) + 1.
int64_t windows(const Window& window, int d, int64_t size);
// Rounded up, but every window starts in the image or its leading padding (PyTorch's rule).
int64_t windows_rounded_up(const Window& window, int d, int64_t size);

}  // namespace fleet
