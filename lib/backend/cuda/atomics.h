// Atomic operations on integers, whose order does not matter. Beside launch.h, for the same reason:
// the tests put another file of this name in front of it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace fleet::cuda {

// *to += value; memory of the device or of the block.
__device__ inline void atomic_add(uint32_t* to, uint32_t value) { atomicAdd(to, value); }
// *to = max(*to, value)
__device__ inline void atomic_max(int32_t* to, int32_t value) { atomicMax(to, value); }

}  // namespace fleet::cuda
