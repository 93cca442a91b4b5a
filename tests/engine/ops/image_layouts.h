// Layouts of images that a CPU's convolutions use.
#pragma once

#include "tensor/layout.h"

namespace fleet {

// The channels of x[N, C, H, W] in blocks, the last one padded.
inline Layout blocked_channels(const Shape& x, int64_t block) {
  const int64_t groups = (x[1] + block - 1) / block, pixels = x[2] * x[3];
  return Layout::blocked({x[0], groups * block, x[2], x[3]},
                         {groups * pixels * block, pixels * block, x[3] * block, block},
                         {{1, block}});
}
inline Layout blocked8(const Shape& x) { return blocked_channels(x, 8); }    // nChw8c
inline Layout blocked16(const Shape& x) { return blocked_channels(x, 16); }  // nChw16c

}  // namespace fleet
