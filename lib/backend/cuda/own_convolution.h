// Convolutions of our own, for where cuDNN is known to be slow: depthwise ones, and transposed ones
// of a single image. Images are NHWC, weights KRSC; all of one type (float32, float16 or bfloat16),
// sums in float32. Enqueued on `stream`, may be recorded in a CUDA graph; they allocate nothing and
// give the same bits every time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "ops/window.h"
#include "tensor/dtype.h"

namespace fleet::cuda {

// A convolution of x[batch, in, channels] to y[batch, out, filters]; a transposed one is described
// by the convolution it is the data gradient of.
struct Convolution {
  DType dtype = DType::kFloat32;
  int64_t batch = 0, channels = 0, filters = 0, groups = 1;
  int64_t in[2] = {0, 0}, out[2] = {0, 0};  // height, width of x and of y
  // Elements from one pixel to the next: the channels, padding included.
  int64_t in_pixel = 0, out_pixel = 0;
  Window window = {};
  bool relu = false;  // x passes through relu on the way in: depthwise ones only
};

// Whether the depthwise kernels take it: groups = channels = filters.
bool is_depthwise(const Convolution& convolution);

// y from x[...], weight[channels, KH, KW, 1] and bias[channels] (may be null). Padding of y is
// zeroed.
void depthwise_forward(const Convolution& convolution, const void* x, const void* weight,
                       const void* bias, void* y, cudaStream_t stream);
// dx from weight and dy, and with relu from x[...], what that was of (else null). Padding of dx is
// zeroed.
void depthwise_data_grad(const Convolution& convolution, const void* weight, const void* dy,
                         const void* x, void* dx, cudaStream_t stream);
// dweight and dbias (either may be null) from x and dy, with `workspace` of as many bytes.
size_t depthwise_weight_grad_workspace(const Convolution& convolution);
void depthwise_weight_grad(const Convolution& convolution, const void* x, const void* dy,
                           void* dweight, void* dbias, void* workspace, cudaStream_t stream);

// Whether transposed_forward() is likely faster than cuDNN: one image, no groups.
bool prefers_own_transposed(const Convolution& convolution);

// The transposed convolution's output [batch, in, channels] from its input [batch, out, filters]:
// the data gradient of `convolution` with weight[filters, KH, KW, channels / groups], plus
// bias[channels] (may be null). Padding of the output is zeroed. Any batch and groups.
void transposed_forward(const Convolution& convolution, const void* input, const void* weight,
                        const void* bias, void* output, cudaStream_t stream);

}  // namespace fleet::cuda
