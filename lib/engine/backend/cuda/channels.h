// Biases of convolutions: one value per channel, added to an image or summed from one. Images are
// rows of `stored` elements; the first `channels` of them are valid; sums are in float32, always
// in the same order. Enqueued on `stream`; may be recorded in a CUDA graph.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "exec/kernel.h"
#include "tensor/dtype.h"

namespace fleet::cuda {

struct ChannelRows {
  DType dtype = DType::kFloat32;  // the image's
  int64_t rows = 0;               // pixels of all images
  int64_t channels = 0, stored = 0;
};
// Of an image without padding.
inline ChannelRows rows_of(const Shape& image, DType dtype) {
  return {.dtype = dtype,
          .rows = image[0] * image[2] * image[3],
          .channels = image[1],
          .stored = image[1]};
}

// y += bias
void add_bias(const ChannelRows& image, void* y, const void* bias, DType bias_type,
              cudaStream_t stream);
// sums[channels] over the rows; `workspace` must have this many bytes.
size_t sum_rows_workspace(const ChannelRows& image);
void sum_rows(const ChannelRows& image, const void* x, void* sums, DType sums_type, void* workspace,
              cudaStream_t stream);

// Kernels of layers with a bias: run `product` first, if there is one. A bias or sums that are
// absent are left out.
std::unique_ptr<Kernel> add_bias_after(std::shared_ptr<Kernel> product, const ChannelRows& image,
                                       const Argument& y, const Argument& bias);
std::unique_ptr<Kernel> sum_rows_after(std::shared_ptr<Kernel> product, const ChannelRows& image,
                                       const Argument& x, const Argument& sums, void* workspace);

}  // namespace fleet::cuda
