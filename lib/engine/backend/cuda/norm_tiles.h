// Kernels of batch normalization: division of an image's rows and channels among blocks and
// threads, and combination of their sums.
#pragma once

#include <algorithm>
#include <type_traits>

#include "backend/cuda/norm.h"
#include "backend/cuda/types.h"

namespace fleet::cuda {

// A block of kBlock threads takes `columns` consecutive packs of channels; its threads share the
// rows of its part, kBlock / columns at a time. Sums are added by thread within a part and then by
// part, in order.
struct NormTiling {
  int64_t rows, channels, rows_a_part;
  int columns;
};

inline constexpr int64_t kMaxParts = 512;   // enough blocks for the largest GPUs
inline constexpr int64_t kRowsAThread = 4;  // minimum if there is more than one part
inline constexpr int kMaxColumns = 32;
inline constexpr int kFinishLanes = 32;
// Resident blocks per multiprocessor: leaves 64 registers a thread. With fewer blocks, kMaxParts of
// them would need a second, mostly empty round.
inline constexpr int kResident = 4;

// Whether the batch's statistics are valid for updating the running ones.
__device__ inline bool has_statistics(float mean, float variance) {
  return mean - mean == 0 && variance - variance == 0;  // false for infinities and NaN
}

struct NormPlace {
  int64_t channel;  // the first of the thread's pack
  int64_t begin, end;
  int lane, lanes;
  __device__ bool inside(const NormTiling& t) const { return channel < t.channels; }
};

template <int pack>
__device__ inline NormPlace place_of(const NormTiling& t) {
  NormPlace p;
  const int column = static_cast<int>(threadIdx.x) % t.columns;
  p.lane = static_cast<int>(threadIdx.x) / t.columns;
  p.lanes = kBlock / t.columns;
  p.channel = (static_cast<int64_t>(blockIdx.x) * t.columns + column) * pack;
  p.begin = static_cast<int64_t>(blockIdx.y) * t.rows_a_part;
  p.end = p.begin + t.rows_a_part < t.rows ? p.begin + t.rows_a_part : t.rows;
  return p;
}

// Calls use(at, load(at)) for the first element of a thread's pack in each of its rows. Loads
// `ahead` rows before it uses the first: a kernel may overwrite its inputs, so the compiler keeps
// the order of its loads and stores.
template <int ahead, typename Load, typename Use>
__device__ inline void for_rows_ahead(const NormTiling& t, const NormPlace& p, const Load& load,
                                      const Use& use) {
  const int64_t step = p.lanes * t.channels, end = p.end * t.channels;
  int64_t at = (p.begin + p.lane) * t.channels + p.channel;
  for (; at + (ahead - 1) * step < end; at += ahead * step) {
    decltype(load(at)) loaded[ahead];
#pragma unroll
    for (int k = 0; k < ahead; ++k) loaded[k] = load(at + k * step);
#pragma unroll
    for (int k = 0; k < ahead; ++k) use(at + k * step, loaded[k]);
  }
  for (; at < end; at += step) use(at, load(at));
}

// Adds two sums per channel over the block's threads; partial[part][2][channels].
template <int pack>
__device__ inline void store_part(const NormTiling& t, const NormPlace& p,
                                  const float (&first)[pack], const float (&second)[pack],
                                  float* partial) {
  __shared__ float sums[2][kBlock * pack];
#pragma unroll
  for (int i = 0; i < pack; ++i) {
    sums[0][threadIdx.x * pack + i] = first[i];
    sums[1][threadIdx.x * pack + i] = second[i];
  }
  block_barrier();
  const int width = t.columns * pack;
  const int64_t base = static_cast<int64_t>(blockIdx.x) * width;
  for (int i = static_cast<int>(threadIdx.x); i < 2 * width; i += kBlock) {
    const int which = i / width, column = i % width;
    if (base + column >= t.channels) continue;
    float sum = 0;
    for (int lane = 0; lane < p.lanes; ++lane) sum += sums[which][lane * width + column];
    partial[(static_cast<int64_t>(blockIdx.y) * 2 + which) * t.channels + base + column] = sum;
  }
}

// A channel's two sums over all parts; valid in threads with threadIdx.y = 0.
struct NormSums {
  float first = 0, second = 0;
};
__device__ inline NormSums add_parts(const float* partial, int64_t channels, int64_t channel,
                                     int64_t parts) {
  __shared__ float lanes[2][kFinishLanes][kWarp];
  NormSums sums;
  if (channel < channels) {
    for (int64_t part = threadIdx.y; part < parts; part += kFinishLanes) {
      sums.first += partial[part * 2 * channels + channel];
      sums.second += partial[(part * 2 + 1) * channels + channel];
    }
  }
  lanes[0][threadIdx.y][threadIdx.x] = sums.first;
  lanes[1][threadIdx.y][threadIdx.x] = sums.second;
  block_barrier();
  NormSums all;
  for (int lane = 0; threadIdx.y == 0 && lane < kFinishLanes; ++lane) {
    all.first += lanes[0][lane][threadIdx.x];
    all.second += lanes[1][lane][threadIdx.x];
  }
  return all;
}

inline int64_t norm_pack(const NormShape& shape) {
  const int64_t pack = 16 / static_cast<int64_t>(size_of(shape.dtype));
  return shape.channels % pack == 0 ? pack : 1;
}

struct NormLaunch {
  NormTiling tiling;
  dim3 grid;
  int64_t parts;
};

inline NormLaunch norm_launch(const NormShape& shape, int64_t pack) {
  const int64_t packs = shape.channels / pack;
  int columns = 1;
  while (columns < kMaxColumns && columns < packs) columns *= 2;
  const int64_t tiles = ceil_div(packs, columns), lanes = kBlock / columns;
  const int64_t most = ceil_div(shape.rows, lanes * kRowsAThread);
  const int64_t wanted = std::max<int64_t>(1, std::min(most, ceil_div(kMaxParts, tiles)));
  const int64_t rows_a_part = ceil_div(shape.rows, wanted);
  const int64_t parts = ceil_div(shape.rows, rows_a_part);
  return {{shape.rows, shape.channels, rows_a_part, columns},
          dim3(blocks_for(tiles, 1), static_cast<unsigned>(parts)),
          parts};
}

inline NormLaunch norm_launch(const NormShape& shape) {
  return norm_launch(shape, norm_pack(shape));
}

// Of kernels that keep many values of a channel: with packs of 8 they would need more registers
// than kResident blocks leave.
inline constexpr int kSmallPack = 4;
inline int64_t small_norm_pack(const NormShape& shape) {
  return shape.channels % kSmallPack == 0 ? kSmallPack : 1;
}

// Calls body(T(), pack) with the pack as a constant.
template <typename Body>
void dispatch_norm(const NormShape& shape, Body body) {
  dispatch(shape.dtype, [&](auto type) {
    using T = decltype(type);
    if (norm_pack(shape) == 1) {
      body(type, std::integral_constant<int, 1>());
    } else {
      body(type, std::integral_constant<int, kPack<T>>());
    }
  });
}

template <typename Body>
void dispatch_small_norm(const NormShape& shape, Body body) {
  dispatch(shape.dtype, [&](auto type) {
    if (small_norm_pack(shape) == 1) {
      body(type, std::integral_constant<int, 1>());
    } else {
      body(type, std::integral_constant<int, kSmallPack>());
    }
  });
}

// sum and squares[channels] from `parts` parts as store_part() leaves them (norm_parts.cu).
void finish_norm_sums(const NormShape& shape, const float* partial, int64_t parts, float* sum,
                      float* squares, cudaStream_t stream);

inline dim3 finish_grid(const NormShape& shape) { return dim3(blocks_for(shape.channels, kWarp)); }

}  // namespace fleet::cuda
