// Atomic operations on integers, whose order does not matter. A separate header like launch.h,
// because the tests replace both with files of the same name.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace fleet::cuda {

// *to += value, in device memory or the block's shared memory.
__device__ inline void atomic_add(uint32_t* to, uint32_t value) { atomicAdd(to, value); }
// *to = max(*to, value)
__device__ inline void atomic_max(int32_t* to, int32_t value) { atomicMax(to, value); }

}  // namespace fleet::cuda
