// Kernels that run a convolution of cuDNN.
#pragma once

#include "backend/cuda/dnn_convolution.h"
#include "exec/kernel.h"

namespace fleet::cuda::dnn {

// Whether cuDNN can do it on this device; null (no device): it is assumed to.
bool is_supported(Device* device, const Convolution& convolution);
// Bytes of workspace the chosen algorithm needs; 0 where there is no device to ask.
// kUnsupported where cuDNN has no algorithm within the limits.
size_t workspace_of(Device* device, const Convolution& convolution);
// Runs it on this memory; bias null where the convolution has none.
std::unique_ptr<Kernel> make_kernel(Device& device, const Convolution& convolution, void* x,
                                    void* weight, void* y, void* bias, void* workspace);

}  // namespace fleet::cuda::dnn
