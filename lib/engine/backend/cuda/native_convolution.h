// Our own convolutions, for cases where cuDNN is known to be slow: depthwise ones, and transposed
// ones of a single image. Images are NHWC, weights KRSC, all of one type (float32, float16 or
// bfloat16); sums are in float32. Enqueued on `stream`, may be recorded in a CUDA graph; they do
// not allocate and are bitwise reproducible.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "ops/window.h"
#include "tensor/dtype.h"

namespace fleet::cuda {

// A convolution of x[batch, in, channels] to y[batch, out, filters]. A transposed one is described
// by the convolution whose data gradient it is.
struct Convolution {
  DType dtype = DType::kFloat32;
  int64_t batch = 0, channels = 0, filters = 0, groups = 1;
  int64_t in[2] = {0, 0}, out[2] = {0, 0};  // height, width of x and of y
  // Stride between pixels, in elements: the number of channels, including padding.
  int64_t in_pixel = 0, out_pixel = 0;
  Window window = {};
  bool relu = false;  // relu is applied to x first: depthwise ones only
};

// Whether the depthwise kernels support it: groups = channels = filters.
bool is_depthwise(const Convolution& convolution);

// y from x[...], weight[channels, KH, KW, 1] and bias[channels] (may be null). Zeroes the padding
// of y.
void depthwise_forward(const Convolution& convolution, const void* x, const void* weight,
                       const void* bias, void* y, cudaStream_t stream);
// dx from weight and dy, and with relu from x[...], the input of relu (otherwise null). Zeroes the
// padding of dx.
void depthwise_data_grad(const Convolution& convolution, const void* weight, const void* dy,
                         const void* x, void* dx, cudaStream_t stream);
// dweight and dbias (either may be null) from x and dy; `workspace` must have this many bytes.
size_t depthwise_weight_grad_workspace(const Convolution& convolution);
void depthwise_weight_grad(const Convolution& convolution, const void* x, const void* dy,
                           void* dweight, void* dbias, void* workspace, cudaStream_t stream);

// Whether transposed_forward() is probably faster than cuDNN: one image, no groups.
bool prefers_own_transposed(const Convolution& convolution);

// The transposed convolution's output [batch, in, channels] from its input [batch, out, filters]:
// the data gradient of `convolution` with weight[filters, KH, KW, channels / groups], plus
// bias[channels] (may be null). Zeroes the padding of the output. Any batch and groups.
void transposed_forward(const Convolution& convolution, const void* input, const void* weight,
                        const void* bias, void* output, cudaStream_t stream);

}  // namespace fleet::cuda
