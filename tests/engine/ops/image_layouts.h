// Layouts of images that a CPU's convolutions use.
#pragma once

#include "tensor/layout.h"

namespace fleet {

// nChw16c: the channels of x[N, C, H, W] in blocks of 16, the last one padded.
inline Layout blocked16(const Shape& x) {
  const int64_t groups = (x[1] + 15) / 16, pixels = x[2] * x[3];
  return Layout::blocked({x[0], groups * 16, x[2], x[3]},
                         {groups * pixels * 16, pixels * 16, x[3] * 16, 16}, {{1, 16}});
}

}  // namespace fleet
