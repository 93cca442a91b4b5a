// Our own global average pooling: one read of the image and one small write. Images are NHWC, in
// float32, float16 or bfloat16; sums are in float32. Enqueued on `stream`, may be recorded in a
// CUDA graph; bitwise reproducible.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "tensor/dtype.h"

namespace fleet::cuda {

struct GlobalPooling {
  DType dtype = DType::kFloat32;
  int64_t batch = 0, pixels = 0;
  int64_t channels = 0;  // as stored, including padding
};

// y[batch, channels] = mean over the pixels of x[batch, pixels, channels].
void global_average(const GlobalPooling& pooling, const void* x, void* y, cudaStream_t stream);
// dx[batch, pixels, channels] = dy[batch, channels] / pixels.
void global_average_grad(const GlobalPooling& pooling, const void* dy, void* dx,
                         cudaStream_t stream);

}  // namespace fleet::cuda
