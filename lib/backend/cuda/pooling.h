// Maxima and means over windows of an image, by kernels of our own: one read and one write, and for
// the gradient of a maximum a mask instead of the image. Images are NHWC; any type, sums in
// float32. Enqueued on `stream`, may be recorded in a CUDA graph; allocates nothing and gives the
// same bits every time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "ops/window.h"
#include "tensor/dtype.h"

namespace fleet::cuda {

struct Pooling {
  DType dtype = DType::kFloat32;
  int64_t batch = 0, channels = 0;          // channels as stored: padding included
  int64_t in[2] = {0, 0}, out[2] = {0, 0};  // height, width
  Window window = {};
  bool is_max = true;
  bool exclusive = true;  // a mean counts the elements in the image only
};

// Bytes of the mask: for each maximum where in its window it was found.
int64_t pooling_mask_bytes(const Pooling& pooling);
// y of x; of equal maxima the first counts. mask may be null.
void pooling_forward(const Pooling& pooling, const void* x, void* y, void* mask,
                     cudaStream_t stream);
// dx of dy. The mask is read for a maximum.
void pooling_backward(const Pooling& pooling, const void* dy, const void* mask, void* dx,
                      cudaStream_t stream);

}  // namespace fleet::cuda
