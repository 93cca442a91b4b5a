// Maxima and means over windows of an image, with our own kernels: one read and one write; the
// gradient of a maximum reads a mask instead of the image. Images are NHWC of any type; sums are in
// float32. Enqueued on `stream`, may be recorded in a CUDA graph; does not allocate and is bitwise
// reproducible.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "ops/window.h"
#include "tensor/dtype.h"

namespace fleet::cuda {

struct Pooling {
  DType dtype = DType::kFloat32;
  int64_t batch = 0, channels = 0;          // channels as stored, including padding
  int64_t in[2] = {0, 0}, out[2] = {0, 0};  // height, width
  Window window = {};
  bool is_max = true;
  bool exclusive = true;  // a mean counts only elements inside the image
};

// Bytes of the mask: for each maximum, its position in the window.
int64_t pooling_mask_bytes(const Pooling& pooling);
// y from x; among equal maxima the first wins. mask may be null.
void pooling_forward(const Pooling& pooling, const void* x, void* y, void* mask,
                     cudaStream_t stream);
// dx from dy. The mask is read for a maximum.
void pooling_backward(const Pooling& pooling, const void* dy, const void* mask, void* dx,
                      cudaStream_t stream);

// Global average pooling: one read of the image and one small write. In float32, float16 or
// bfloat16.
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
