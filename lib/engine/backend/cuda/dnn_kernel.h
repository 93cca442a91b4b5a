// Kernels that run a cuDNN convolution.
#pragma once

#include <memory>

#include "backend/cuda/dnn_convolution.h"
#include "exec/kernel.h"

namespace fleet::cuda::dnn {

// Whether cuDNN supports it on this device. Without a device (null), assumes that it does.
bool is_supported(Device* device, const Convolution& convolution);
// Bytes of workspace of the chosen algorithm; 0 without a device. kUnsupported if cuDNN has no
// algorithm within the limits.
size_t workspace_of(Device* device, const Convolution& convolution);
// Runs it on this memory; bias is null if the convolution has none.
std::unique_ptr<Kernel> make_kernel(Device& device, const Convolution& convolution, void* x,
                                    void* weight, void* y, void* bias, void* workspace);

}  // namespace fleet::cuda::dnn
