// Layouts of images and convolution weights on a GPU: channels innermost, whatever the type.
#pragma once

#include <vector>

#include "tensor/dtype.h"
#include "tensor/layout.h"

namespace fleet::cuda {

// NHWC of an image, KRSC of weights, with the channels (axis 1) padded to whole blocks of so many;
// the padding is zero. Without padding: Layout::channels_last.
Layout channels_last(const Shape& shape, int64_t block = 1);

// The block an image of so few channels is padded to before its first convolution: tensor cores
// load 16 bytes at a time, and cuDNN would make a padded copy of its own. 1: as it is.
int64_t channel_block(int64_t channels, int64_t groups, DType dtype);

// Sizes in memory: those of the shape with padded channels.
Shape stored(const Shape& shape, int64_t block);

// KernelDef::dtypes of kernels on the libraries: float32, float16, bfloat16.
std::vector<DType> kernel_types();

}  // namespace fleet::cuda
