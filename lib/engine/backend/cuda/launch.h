// Kernel launches, and the CUDA features beyond plain C++ that kernels may use. Every .cu file uses
// this header: the tests replace it with a file of the same name and run the same kernels on the
// host (tests/engine/backend/cuda/emulator). So use no other launch syntax, barrier or warp
// function.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "backend/cuda/device.h"

namespace fleet::cuda {

inline constexpr int kWarp = 32;    // threads that can exchange registers
inline constexpr int kBlock = 256;  // default number of threads per block

// Runs kernel(arguments...) with grid.x * y * z blocks of block.x * y * z threads, in stream order.
// May be recorded in a CUDA graph: memory that the arguments point to must not move. A grid without
// blocks does nothing. Throws fleet::Error if the launch is rejected.
//   shared_bytes  dynamic shared memory per block, see dynamic_shared(); up to 48 KiB
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes,
            cudaStream_t stream, Arguments... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  kernel<<<grid, block, shared_bytes, stream>>>(static_cast<Parameters>(arguments)...);
  check(cudaGetLastError(), "launching a kernel");
}

// The launch's dynamic shared memory, 16-byte aligned. One array per kernel.
template <typename T>
__device__ T* dynamic_shared() {
  extern __shared__ __align__(16) unsigned char fleet_dynamic_shared[];
  return reinterpret_cast<T*>(fleet_dynamic_shared);
}

// Waits for all threads of the block that have not returned.
__device__ inline void block_barrier() { __syncthreads(); }
// `value` of the lane whose number is this lane's XOR `distance`. All 32 lanes must call it.
template <typename T>
__device__ T shuffle_xor(T value, int distance) {
  return __shfl_xor_sync(0xffffffffu, value, distance);
}
// `value` of lane `lane`. All 32 lanes must call it.
template <typename T>
__device__ T shuffle(T value, int lane) {
  return __shfl_sync(0xffffffffu, value, lane);
}
// One bit per lane: whether `predicate` holds. All 32 lanes must call it.
__device__ inline unsigned ballot(bool predicate) { return __ballot_sync(0xffffffffu, predicate); }

// Atomic operations on integers, whose order does not matter.
// *to += value, in device memory or the block's shared memory.
__device__ inline void atomic_add(uint32_t* to, uint32_t value) { atomicAdd(to, value); }
// *to = max(*to, value)
__device__ inline void atomic_max(int32_t* to, int32_t value) { atomicMax(to, value); }

}  // namespace fleet::cuda
