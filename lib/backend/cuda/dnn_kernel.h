// Kernels that run a convolution of cuDNN, alone or with what is around it.
#pragma once

#include <utility>
#include <vector>

#include "backend/cuda/dnn_patterns.h"
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

// The same for a pattern: not supported is no error but asks for the plain way.
bool is_supported(Device* device, const Pattern& pattern);
size_t workspace_of(Device* device, const Pattern& pattern);
// memory: of each of tensors_of(pattern), by id.
std::unique_ptr<Kernel> make_kernel(Device& device, const Pattern& pattern,
                                    const std::vector<std::pair<int64_t, void*>>& memory,
                                    void* workspace);

}  // namespace fleet::cuda::dnn
