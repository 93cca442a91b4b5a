// Kernels over the rows of a matrix: one warp per short row, one block per long row. For .cu files.
#pragma once

#include "backend/cuda/types.h"

namespace fleet::cuda {

inline constexpr int64_t kShortRow = 1024;  // maximum elements per warp

// The context of a kernel over rows: the threads of one row, and sums and maxima over them.
template <int threads>
struct RowThreads {
  static_assert(threads == kWarp || threads == kBlock);
  __device__ static int64_t row() {
    return threads == kWarp ? thread_index() / kWarp : static_cast<int64_t>(blockIdx.x);
  }
  __device__ static int64_t first() { return threadIdx.x % threads; }
  __device__ static float sum(float value) {
    if constexpr (threads == kWarp) return warp_sum(value);
    return block_sum<kBlock>(value);
  }
  __device__ static float max(float value) {
    if constexpr (threads == kWarp) return warp_max(value);
    return block_max<kBlock>(value);
  }
};

template <int threads, typename Body>
__global__ void for_rows(int64_t rows, Body body) {
  const int64_t row = RowThreads<threads>::row();
  if (row < rows) body(RowThreads<threads>(), row);  // all threads of a row stay or leave together
}

// Calls body(RowThreads, row) with all threads of each row. body is a functor that works for both
// thread counts.
template <typename Body>
void launch_rows(cudaStream_t stream, int64_t rows, int64_t columns, Body body) {
  if (columns <= kShortRow) {
    launch(for_rows<kWarp, Body>, blocks_for(rows, kBlock / kWarp), kBlock, 0, stream, rows, body);
  } else {
    launch(for_rows<kBlock, Body>, blocks_for(rows, 1), kBlock, 0, stream, rows, body);
  }
}

}  // namespace fleet::cuda
