// Convolutions of 1 x 1 for GPUs of compute capability 9.0 (Hopper), in float16 and bfloat16: the
// batch normalization before them is applied to the image as it is loaded, and the sums for the one
// after them are taken before the result is stored. So neither needs a pass over memory.
#pragma once

#include "backend/cuda/native_convolution.h"
#include "backend/cuda/norm.h"
#include "tensor/device.h"

namespace fleet::cuda {

// The image is activation(factor x + constant) of the x in memory, with float32 values per channel;
// without factor it is the x in memory.
struct PointwiseInput {
  const float *factor = nullptr, *constant = nullptr;
  NormActivation activation = NormActivation::kNone;
};

// Whether the kernels compute it: without padding, groups and padded channels, channels and filters
// in multiples of 8, and no activation or relu. Without a device (null), assumes a GPU that they
// run on.
bool takes_pointwise(Device* device, const Convolution& convolution, NormActivation activation);

// y[..., filters] from x[..., channels] and weight[filters, channels], without a bias. sum and
// squares[filters]: of y - pivot[filters] (null: 0) and of its squares, of y as stored; summed in
// float32 in an order that depends on the device and the shape alone. `workspace` must have this
// many bytes. Enqueued on `stream`, may be recorded in a CUDA graph.
size_t pointwise_workspace(const Convolution& convolution);
void pointwise_sums_forward(Device& device, const Convolution& convolution, const void* x,
                            const void* weight, const PointwiseInput& input, const float* pivot,
                            void* y, float* sum, float* squares, void* workspace,
                            cudaStream_t stream);

}  // namespace fleet::cuda
