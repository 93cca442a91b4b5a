// gelu (form with tanh) and its gradient after a product, where cuBLASLt has no epilogue for them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "tensor/dtype.h"

namespace fleet::cuda {

// y[i] = gelu(before[i]), all of one type.
void gelu_after(int64_t count, DType dtype, const void* before, void* y, cudaStream_t stream);
// dx[i] *= gelu'(before[i])
void gelu_gradient_after(int64_t count, DType dtype, const void* before, void* dx,
                         cudaStream_t stream);

}  // namespace fleet::cuda
