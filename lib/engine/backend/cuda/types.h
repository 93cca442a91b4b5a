// Element types of kernels: dispatch by type, 128-bit accesses, conversion to float (the type that
// all kernels compute in), sums and maxima over a warp and a block, and grid sizes.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <string>
#include <vector>

#include "backend/cuda/launch.h"
#include "base/error.h"
#include "tensor/dtype.h"

namespace fleet::cuda {

// KernelDef::dtypes of kernels that dispatch by type.
inline std::vector<DType> floating_types() {
  return {DType::kFloat32, DType::kFloat16, DType::kBFloat16};
}

// Calls body(T()) with float, __half or __nv_bfloat16; kUnsupported for another type.
template <typename Body>
auto dispatch(DType dtype, Body body) {
  switch (dtype) {
    case DType::kFloat32:
      return body(float());
    case DType::kFloat16:
      return body(__half());
    case DType::kBFloat16:
      return body(__nv_bfloat16());
    default:
      throw Error(ErrorCode::kUnsupported, std::string("no cuda kernel for ") + name_of(dtype));
  }
}

// Conversions: exact to float, rounded to nearest even from float.
__host__ __device__ inline float to_float(float x) { return x; }
__host__ __device__ inline float to_float(__half x) { return __half2float(x); }
__host__ __device__ inline float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
template <typename T>
__host__ __device__ inline T from_float(float x);
template <>
__host__ __device__ inline float from_float<float>(float x) {
  return x;
}
template <>
__host__ __device__ inline __half from_float<__half>(float x) {
  return __float2half_rn(x);
}
template <>
__host__ __device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}

// `count` consecutive elements, moved with as few accesses as possible: 16 bytes each.
template <typename T, int count>
struct alignas(sizeof(T) * count < 16 ? sizeof(T) * count : 16) Pack {
  T at[count];
};
// Elements per 128-bit access.
template <typename T>
inline constexpr int kPack = 16 / static_cast<int>(sizeof(T));

// Elements begin..begin + count - 1 of memory. begin must be a multiple of count, and memory
// 16-byte aligned.
template <int count, typename T>
__device__ inline Pack<T, count> load_pack(const T* memory, int64_t begin) {
  return *reinterpret_cast<const Pack<T, count>*>(memory + begin);
}
template <int count, typename T>
__device__ inline void store_pack(T* memory, int64_t begin, const Pack<T, count>& pack) {
  *reinterpret_cast<Pack<T, count>*>(memory + begin) = pack;
}
// The same, converted.
template <int count, typename T>
__device__ inline Pack<float, count> load_floats(const T* memory, int64_t begin) {
  const Pack<T, count> pack = load_pack<count>(memory, begin);
  Pack<float, count> values;
#pragma unroll
  for (int i = 0; i < count; ++i) values.at[i] = to_float(pack.at[i]);
  return values;
}
template <int count, typename T>
__device__ inline void store_floats(T* memory, int64_t begin, const Pack<float, count>& values) {
  Pack<T, count> pack;
#pragma unroll
  for (int i = 0; i < count; ++i) pack.at[i] = from_float<T>(values.at[i]);
  store_pack<count>(memory, begin, pack);
}
// Memory of a Plan is aligned; a slice of it need not be.
inline bool is_aligned(const void* memory) { return reinterpret_cast<uintptr_t>(memory) % 16 == 0; }

// Reduction operators.
struct Sum {
  static constexpr float kIdentity = 0;
  __device__ static float of(float a, float b) { return a + b; }
};
struct Max {
  static constexpr float kIdentity = -3.402823466e38f;
  __device__ static float of(float a, float b) { return a > b ? a : b; }
};

// Reduces over the lanes of a warp; all lanes get the result. All 32 lanes must call it; the order
// of operations is fixed.
template <typename Operator>
__device__ inline float warp_reduce(float value) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value = Operator::of(value, shuffle_xor(value, distance));
  }
  return value;
}
__device__ inline float warp_sum(float value) { return warp_reduce<Sum>(value); }
__device__ inline float warp_max(float value) { return warp_reduce<Max>(value); }

// Reduces over a block of `threads` threads in x (a multiple of 32); all threads get the result.
// All threads must call it.
template <typename Operator, int threads>
__device__ inline float block_reduce(float value) {
  static_assert(threads % kWarp == 0 && threads <= 1024);
  constexpr int kWarps = threads / kWarp;
  __shared__ float partial[kWarps];
  value = warp_reduce<Operator>(value);
  block_barrier();  // an earlier call may still read partial
  if (threadIdx.x % kWarp == 0) partial[threadIdx.x / kWarp] = value;
  block_barrier();
  float total = partial[0];
#pragma unroll
  for (int warp = 1; warp < kWarps; ++warp) total = Operator::of(total, partial[warp]);
  return total;
}
template <int threads>
__device__ inline float block_sum(float value) {
  return block_reduce<Sum, threads>(value);
}
template <int threads>
__device__ inline float block_max(float value) {
  return block_reduce<Max, threads>(value);
}

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The number of blocks that cover `items`, `per_block` each. kUnsupported if it exceeds the grid
// limit.
inline unsigned blocks_for(int64_t items, int64_t per_block = kBlock) {
  const int64_t blocks = ceil_div(items, per_block);
  if (blocks > 0x7fffffff) {
    throw Error(ErrorCode::kUnsupported,
                "a tensor of " + std::to_string(items) + " elements is too large for one kernel");
  }
  return static_cast<unsigned>(blocks);
}

// a / b for non-negative numbers. 64-bit divisions are slow and rarely needed.
__device__ inline int64_t quotient(int64_t a, int64_t b) {
  if (((a | b) >> 32) == 0) return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
  return a / b;
}
__device__ inline int64_t remainder_of(int64_t a, int64_t b) { return a - quotient(a, b) * b; }

// Index of this thread in a one-dimensional grid.
__device__ inline int64_t thread_index() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

}  // namespace fleet::cuda
