// Attention on tensor cores, for 16-bit types and heads of up to 128 elements: products of 16-bit
// tiles, sums, exponentials and slopes in float. Probabilities and slopes are rounded to the type
// before the products that use them. For .cu files.
#pragma once

#include "backend/cuda/attention.h"
#include "backend/cuda/device.h"

namespace fleet::cuda {

inline constexpr int64_t kLongestTileHead = 128;

// Whether the kernels below take such a call: rows of whole 16 bytes, and a GPU that has the
// instructions.
inline bool takes_tiles(Device& device, DType dtype, int64_t size) {
  return dtype != DType::kFloat32 && size % 8 == 0 && size <= kLongestTileHead &&
         cuda_device(device).properties().major >= 8;
}

// T: __half or __nv_bfloat16. lse may be null; of the gradient's results those that are null.
template <typename T>
void attend_tiles(cudaStream_t stream, const AttentionCall<T>& a, T* y, float* lse);
template <typename T>
void differentiate_tiles(cudaStream_t stream, const GradientCall<T>& g);

// Each warp has 16 rows of its own side, and meets the other side in tiles in shared memory. A lane
// holds of a result [16, 8]: columns 2 (lane % 4) and the next of row lane / 4 (elements 0, 1), and
// of the row 8 below (elements 2, 3).
inline constexpr int kWarpRows = 16;
inline constexpr int kBlockRows = kWarpRows * kAttentionWarps;

// Elements from row to row in shared memory, for heads padded to `width`: rows that a warp reads
// together start in different banks.
template <int width>
inline constexpr int kTileStride = width + 8;

struct TileLane {
  int row, column;  // the first element's
  __device__ static TileLane of_thread() {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    return {lane / 4, lane % 4 * 2};
  }
};

// Copies `count` rows from row `first` on, `stride` elements apart, with 0 for rows from `tokens`
// and columns from `size` on. All threads of the block must call it.
template <int width, int count, typename T>
__device__ void load_tile(const T* from, int64_t stride, int64_t first, int64_t tokens, int size,
                          T* to) {
  constexpr int kPacks = width / 8;
  for (int i = static_cast<int>(threadIdx.x); i < count * kPacks; i += kAttentionThreads) {
    const int row = i / kPacks, column = i % kPacks * 8;
    Pack<T, 8> pack;
    if (first + row < tokens && column < size) {
      pack = load_pack<8>(from + (first + row) * stride, column);
    } else {
#pragma unroll
      for (int e = 0; e < 8; ++e) pack.at[e] = from_float<T>(0);
    }
    store_pack<8>(to + row * kTileStride<width>, column, pack);
  }
}

// The left side of a product: rows 0 to 15 of `tile`, columns `column` to column + 15.
template <int width, typename T>
__device__ void load_left(uint32_t (&left)[4], const T* tile, int column) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  load_matrices<false>(left, tile + lane % 16 * kTileStride<width> + column + lane / 16 * 8);
}
// The right sides of two products, [16, 8] each, from a tile with a row for each of their columns:
// rows 0 to 15, columns `column` to column + 15. right[0, 1] are of the first eight rows.
template <int width, typename T>
__device__ void load_right(uint32_t (&right)[4], const T* tile, int column) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int row = lane % 8 + lane / 16 * 8;
  load_matrices<false>(right, tile + row * kTileStride<width> + column + lane / 8 % 2 * 8);
}
// The same from a tile with a row for each of their rows: columns `column` to column + 15 are
// those of the two products.
template <int width, typename T>
__device__ void load_right_transposed(uint32_t (&right)[4], const T* tile, int column) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  load_matrices<true>(right, tile + lane % 16 * kTileStride<width> + column + lane / 16 * 8);
}

template <typename T>
__device__ uint32_t pack_pair(float low, float high) {
  const T pair[2] = {from_float<T>(low), from_float<T>(high)};
  uint32_t bits;
  memcpy(&bits, pair, sizeof bits);
  return bits;
}
// The left side of a product from two results [16, 8] next to each other.
template <typename T>
__device__ void pack_left(uint32_t (&left)[4], const float (&first)[4], const float (&second)[4]) {
  left[0] = pack_pair<T>(first[0], first[1]);
  left[1] = pack_pair<T>(first[2], first[3]);
  left[2] = pack_pair<T>(second[0], second[1]);
  left[3] = pack_pair<T>(second[2], second[3]);
}

// sums[16, width] += left[16, columns] tile[columns, width], with left as results [16, 8].
template <int width, int columns, typename T>
__device__ void add_products(const float (&left)[columns / 8][4], const T* tile,
                             float (&sums)[width / 8][4]) {
#pragma unroll
  for (int j = 0; j < columns / 16; ++j) {
    uint32_t packed[4];
    pack_left<T>(packed, left[2 * j], left[2 * j + 1]);
#pragma unroll
    for (int d = 0; d < width / 16; ++d) {
      uint32_t right[4];
      load_right_transposed<width>(right, tile + j * 16 * kTileStride<width>, d * 16);
      multiply_tiles<T>(sums[2 * d], packed, right[0], right[1]);
      multiply_tiles<T>(sums[2 * d + 1], packed, right[2], right[3]);
    }
  }
}

// Rows first and first + 8 of a lane's results times a factor each, where they exist.
template <int width, typename T>
__device__ void store_results(const float (&sums)[width / 8][4], const float (&factors)[2],
                              int64_t first, int64_t tokens, int size, int64_t stride, T* to) {
  const TileLane lane = TileLane::of_thread();
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int64_t row = first + lane.row + 8 * r;
    if (row >= tokens) break;
#pragma unroll
    for (int d = 0; d < width / 8; ++d) {
      if (d * 8 >= size) break;
      const Pack<T, 2> results{from_float<T>(sums[d][2 * r] * factors[r]),
                               from_float<T>(sums[d][2 * r + 1] * factors[r])};
      store_pack<2>(to + row * stride, d * 8 + lane.column, results);
    }
  }
}

}  // namespace fleet::cuda
