// Depthwise convolutions of 3 x 3, 5 x 5 and 7 x 7 in steps of 1 or 2 (NHWC): a thread keeps the
// sums of a tile of pixels of two channels in registers, so that an element of the image is loaded
// from the first-level cache once for a row of taps, and from memory about once. Sums are in
// float32. native_convolution.h chooses between these and the kernels for any window.
#pragma once

#include "backend/cuda/native_convolution.h"
#include "backend/cuda/norm.h"

namespace fleet::cuda {

// Whether these kernels support it: such a window without dilation, an even number of channels, no
// padded channels, no relu.
bool takes_depthwise_tiles(const Convolution& convolution);

// As depthwise_forward() and the like.
void depthwise_tiles_forward(const Convolution& convolution, const void* x, const void* weight,
                             const void* bias, void* y, cudaStream_t stream);
void depthwise_tiles_data_grad(const Convolution& convolution, const void* weight, const void* dy,
                               void* dx, cudaStream_t stream);
size_t depthwise_tiles_weight_grad_workspace(const Convolution& convolution);
void depthwise_tiles_weight_grad(const Convolution& convolution, const void* x, const void* dy,
                                 void* dweight, void* dbias, void* workspace, cudaStream_t stream);

// From here on (depthwise_norm.cu): with the batch normalizations around the convolution, which
// then need no passes of their own over memory. Parameters and statistics are float32 [channels].

// Whether these kernels support it: as above, 3 x 3 and 5 x 5.
bool takes_depthwise_norm(const Convolution& convolution);
// Whether they apply this activation to x. A silu would cost more arithmetic than its memory
// traffic takes: each value of x is loaded, and thus activated, several times.
bool takes_depthwise_activation(NormActivation activation);

// The convolution's x is activation(factor x + constant) of the x in memory; without factor it is
// the x in memory.
struct DepthwiseInput {
  const float *factor = nullptr, *constant = nullptr;
  NormActivation activation = NormActivation::kNone;
};

// y without a bias; sum and squares: of y - pivot[channels] (null: 0), as stored. `workspace` must
// have depthwise_norm_workspace() bytes here, in all three.
size_t depthwise_norm_workspace(const Convolution& convolution);
void depthwise_sums_forward(const Convolution& convolution, const void* x, const void* weight,
                            const DepthwiseInput& input, const float* pivot, void* y, float* sum,
                            float* squares, void* workspace, cudaStream_t stream);
void depthwise_norm_weight_grad(const Convolution& convolution, const void* x, const void* dy,
                                const DepthwiseInput& input, void* dweight, void* workspace,
                                cudaStream_t stream);

// For an input activation(n), n = scale (x - mean) inverse + bias: the gradient dz of n, and those
// of scale and bias.
struct DepthwiseNormGradient {
  const void* x = nullptr;
  const float *mean = nullptr, *inverse = nullptr, *scale = nullptr, *bias = nullptr;
  NormActivation activation = NormActivation::kNone;
  void* dz = nullptr;
  float *dscale = nullptr, *dbias = nullptr;
};
void depthwise_norm_data_grad(const Convolution& convolution, const void* weight, const void* dy,
                              const DepthwiseNormGradient& gradient, void* workspace,
                              cudaStream_t stream);

}  // namespace fleet::cuda
