// Kernel launches, and the CUDA features beyond plain C++ that kernels may use. Every .cu file uses
// this header: the tests replace it with a file of the same name and run the same kernels on the
// host (tests/engine/backend/cuda/emulator). So use no other launch syntax, barrier or warp
// function.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backend/cuda/device.h"

namespace fleet::cuda {

inline constexpr int kWarp = 32;    // threads that can exchange registers
inline constexpr int kBlock = 256;  // default number of threads per block

// Runs kernel(arguments...) with grid.x * y * z blocks of block.x * y * z threads, in stream order.
// May be recorded in a CUDA graph: memory that the arguments point to must not move. A grid without
// blocks does nothing. Throws fleet::Error if the launch is rejected.
//   shared_bytes  dynamic shared memory per block, see dynamic_shared(); above 48 KiB, no more than
//                 the GPU has
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes,
            cudaStream_t stream, Arguments... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  if (shared_bytes > 48 << 10) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(shared_bytes)),
          "shared memory of a kernel");
  }
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

// Products of 16-bit tiles on tensor cores (compute capability 8.0 on): d[16, 8] += a[16, 16]
// b[16, 8], spread over the warp as PTX's mma.m16n8k16 says. T: __half or __nv_bfloat16, two in a
// register. All 32 lanes must call it.
template <typename T>
__device__ void multiply_tiles(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
#if __CUDA_ARCH__ >= 800
  if constexpr (std::is_same_v<T, __half>) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},"
        "{%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},"
        "{%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
#else
  __trap();  // not chosen for such GPUs
#endif
}
// Four matrices of 8 x 8 elements of 16 bits from shared memory, as PTX's ldmatrix.x4: lanes 8 m to
// 8 m + 7 give the rows of matrix m, 16-byte aligned; to[m] of lane i has two elements of row i / 4
// from column 2 (i % 4) on, or, transposed, of column i / 4 from that row on. All 32 lanes must
// call it.
template <bool transposed>
__device__ void load_matrices(uint32_t (&to)[4], const void* row) {
#if __CUDA_ARCH__ >= 800
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  if constexpr (transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
  }
#else
  __trap();
#endif
}

// Atomic operations on integers, whose order does not matter.
// *to += value, in device memory or the block's shared memory.
__device__ inline void atomic_add(uint32_t* to, uint32_t value) { atomicAdd(to, value); }
// *to = max(*to, value)
__device__ inline void atomic_max(int32_t* to, int32_t value) { atomicMax(to, value); }

}  // namespace fleet::cuda
