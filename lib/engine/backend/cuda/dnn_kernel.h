// Kernels that run a cuDNN convolution, alone or with surrounding operations.
#pragma once

#include <utility>
#include <vector>

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

// Like the above, for a pattern: if it is unsupported, the caller uses the unfused path.
bool is_supported(Device* device, const Pattern& pattern);
size_t workspace_of(Device* device, const Pattern& pattern);
// memory: for each of tensors_of(pattern), by id.
std::unique_ptr<Kernel> make_kernel(Device& device, const Pattern& pattern,
                                    const std::vector<std::pair<int64_t, void*>>& memory,
                                    void* workspace);

}  // namespace fleet::cuda::dnn
