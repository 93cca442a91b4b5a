// Layouts of images and convolution weights on a GPU: channels innermost for every type.
#pragma once

#include <vector>

#include "tensor/dtype.h"
#include "tensor/layout.h"

namespace fleet::cuda {

// NHWC for images, KRSC for weights, with the channels (axis 1) padded to a multiple of `block`;
// the padding is zero. Without padding: Layout::channels_last, or plain for a single pixel, which
// has the same order in both.
Layout channels_last(const Shape& shape, int64_t block = 1);

// The multiple that an image's channels are padded to before its first convolution if there are
// few: tensor cores load 16 bytes at a time, and cuDNN would make a padded copy itself. 1: no
// padding.
int64_t channel_block(int64_t channels, int64_t groups, DType dtype);

// The shape in memory, with padded channels.
Shape stored(const Shape& shape, int64_t block);

// KernelDef::dtypes of kernels that use the libraries: float32, float16, bfloat16.
std::vector<DType> kernel_types();

}  // namespace fleet::cuda
