// Biases of convolutions: one value per channel, added to an image or summed from one. Images are
// rows of `stored` elements; the first `channels` of them are valid; sums are in float32, always
// in the same order. Enqueued on `stream`; may be recorded in a CUDA graph.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace fleet::cuda {

struct ChannelRows {
  DType dtype = DType::kFloat32;  // the image's
  int64_t rows = 0;               // pixels of all images
  int64_t channels = 0, stored = 0;
};

// y += bias
void add_bias(const ChannelRows& image, void* y, const void* bias, DType bias_type,
              cudaStream_t stream);
// sums[channels] over the rows; `workspace` must have this many bytes.
size_t sum_rows_workspace(const ChannelRows& image);
void sum_rows(const ChannelRows& image, const void* x, void* sums, DType sums_type, void* workspace,
              cudaStream_t stream);

}  // namespace fleet::cuda
