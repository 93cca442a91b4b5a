// Depthwise convolutions in register tiles (depthwise.h): what their kernels share. For .cu files.
#pragma once

#include <algorithm>

#include "backend/cuda/depthwise.h"
#include "backend/cuda/types.h"

namespace fleet::cuda {

inline constexpr int kDepthwiseThreads = 128;  // a block: pairs of channels in x, tiles in y

// The two images that a kernel reads (`from`) and writes (`to`), and its tiles.
struct Sides {
  int channels = 0;
  int from_height = 0, from_width = 0, to_height = 0, to_width = 0;
  int top = 0, left = 0;  // padding
  int tile_rows = 0, tile_columns = 0;
  int64_t tiles = 0;  // of all images
};

struct Tile {
  int64_t image;
  int row, column;  // in tiles
  __device__ Tile(const Sides& g, int64_t tile) {
    const int64_t line = quotient(tile, g.tile_columns);
    column = static_cast<int>(tile - line * g.tile_columns);
    image = quotient(line, g.tile_rows);
    row = static_cast<int>(line - image * g.tile_rows);
  }
};

struct Two {
  float a = 0, b = 0;
  __device__ void add(const Two& x, const Two& y) {
    a += x.a * y.a;
    b += x.b * y.b;
  }
};

template <typename T>
__device__ inline Two load_two(const T* memory) {
  const Pack<T, 2> pack = load_pack<2>(memory, 0);
  return {to_float(pack.at[0]), to_float(pack.at[1])};
}
template <typename T>
__device__ inline void store_two(T* memory, const Two& values) {
  store_pack<2>(memory, 0, Pack<T, 2>{{from_float<T>(values.a), from_float<T>(values.b)}});
}

// The block's weights, as [tap][channel]; turned: taps in reverse order.
template <int taps, typename T>
__device__ inline void load_taps(const T* weight, int channels, int64_t first, bool turned,
                                 float* to) {
  const int own = 2 * static_cast<int>(blockDim.x);
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  for (int i = thread; i < taps * own; i += kDepthwiseThreads) {
    const int channel = i / taps, tap = i - channel * taps;
    to[(turned ? taps - 1 - tap : tap) * own + channel] =
        first + channel < channels ? to_float(weight[(first + channel) * taps + tap]) : 0;
  }
  block_barrier();
}

// `span` pixels of a row from `column` on, as `input` sees them; zeros outside the image.
template <int span, typename T, typename Input>
__device__ inline void load_row(const T* row, int column, int width, int channels,
                                const Input& input, Two* values) {
#pragma unroll
  for (int i = 0; i < span; ++i) {
    const int at = column + i;
    values[i] =
        at >= 0 && at < width ? input(load_two(row + static_cast<int64_t>(at) * channels)) : Two();
  }
}

// An image that is convolved as it is. at(): what a thread does with the values of its two
// channels.
struct PlainInput {
  struct Values {
    __device__ Two operator()(const Two& x) const { return x; }
  };
  __device__ Values at(int64_t) const { return {}; }
};

// A tile of `to` from `from` by a window in steps of `stride`. Both start at the image's first
// pixel of the thread's channels; taps: the thread's. Calls store(row, column, sum).
template <int kernel, int stride, int rows, int columns, typename T, typename Input, typename Store>
__device__ inline void convolve_tile(const Sides& g, const Tile& tile, const T* from,
                                     const float* taps, const Two& start, const Input& input,
                                     const Store& store) {
  const int own = 2 * static_cast<int>(blockDim.x);
  const int row0 = tile.row * rows, column0 = tile.column * columns;
  Two sums[rows][columns];
#pragma unroll
  for (int r = 0; r < rows; ++r) {
#pragma unroll
    for (int c = 0; c < columns; ++c) sums[r][c] = start;
  }
  constexpr int kLines = (rows - 1) * stride + kernel, kSpan = (columns - 1) * stride + kernel;
#pragma unroll 1
  for (int line = 0; line < kLines; ++line) {
    const int row = row0 * stride - g.top + line;
    if (row < 0 || row >= g.from_height) continue;
    Two values[kSpan];
    load_row<kSpan>(from + static_cast<int64_t>(row) * g.from_width * g.channels,
                    column0 * stride - g.left, g.from_width, g.channels, input, values);
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      const int h = line - r * stride;
      if (h < 0 || h >= kernel) continue;
#pragma unroll
      for (int w = 0; w < kernel; ++w) {
        const float* tap = taps + (h * kernel + w) * own;
        const Two factor{tap[0], tap[1]};
#pragma unroll
        for (int c = 0; c < columns; ++c) sums[r][c].add(values[c * stride + w], factor);
      }
    }
  }
#pragma unroll
  for (int r = 0; r < rows; ++r) {
    if (row0 + r >= g.to_height) break;
#pragma unroll
    for (int c = 0; c < columns; ++c) {
      if (column0 + c >= g.to_width) break;
      store(row0 + r, column0 + c, sums[r][c]);
    }
  }
}

// A tile of dx from dy for steps of 2. Tiles begin at even rows and columns of the padded image:
// which taps reach a pixel of a tile is then known here. rows and columns are even.
template <int kernel, int rows, int columns, typename T, typename Store>
__device__ inline void spread_tile(const Sides& g, const Tile& tile, const T* from,
                                   const float* taps, const Store& store) {
  const int own = 2 * static_cast<int>(blockDim.x);
  Two sums[rows][columns] = {};
  constexpr int kBefore = (kernel - 1) / 2;
  constexpr int kLines = rows / 2 + kBefore, kSpan = columns / 2 + kBefore;
#pragma unroll 1
  for (int line = 0; line < kLines; ++line) {
    const int row = tile.row * (rows / 2) - kBefore + line;
    if (row < 0 || row >= g.from_height) continue;
    Two values[kSpan];
    load_row<kSpan>(from + static_cast<int64_t>(row) * g.from_width * g.channels,
                    tile.column * (columns / 2) - kBefore, g.from_width, g.channels,
                    PlainInput::Values(), values);
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      const int h = r + kernel - 1 - 2 * line;
      if (h < 0 || h >= kernel) continue;
#pragma unroll
      for (int c = 0; c < columns; ++c) {
#pragma unroll
        for (int i = 0; i < kSpan; ++i) {
          const int w = c + kernel - 1 - 2 * i;
          if (w < 0 || w >= kernel) continue;
          const float* tap = taps + (h * kernel + w) * own;
          sums[r][c].add(values[i], {tap[0], tap[1]});
        }
      }
    }
  }
  const int row0 = tile.row * rows - g.top, column0 = tile.column * columns - g.left;
#pragma unroll
  for (int r = 0; r < rows; ++r) {
    if (row0 + r < 0 || row0 + r >= g.to_height) continue;
#pragma unroll
    for (int c = 0; c < columns; ++c) {
      if (column0 + c < 0 || column0 + c >= g.to_width) continue;
      store(row0 + r, column0 + c, sums[r][c]);
    }
  }
}

// Sums of one block for its channels over its part of the tiles of dy: rows of `columns` pixels.
// partial: [part][tap, and the bias as the last][channel].
template <int kernel, int stride, int columns, typename T, typename Input>
__global__ void __launch_bounds__(kDepthwiseThreads)
    sum_weight_tiles(Sides g, int64_t tiles_a_part, const T* x, Input input, const T* dy,
                     float* partial) {
  __shared__ Two shared[kDepthwiseThreads];
  const int64_t channel = static_cast<int64_t>(blockIdx.y) * 2 * blockDim.x + 2 * threadIdx.x;
  const int64_t begin = blockIdx.x * tiles_a_part;
  const int64_t end = begin + tiles_a_part < g.tiles ? begin + tiles_a_part : g.tiles;
  const auto seen = input.at(channel < g.channels ? channel : 0);
  Two sums[kernel][kernel] = {}, bias;
  constexpr int kSpan = (columns - 1) * stride + kernel;
#pragma unroll 1
  for (int64_t at = begin + threadIdx.y; at < end && channel < g.channels; at += blockDim.y) {
    const Tile tile(g, at);
    const int column0 = tile.column * columns;
    Two slopes[columns];
    load_row<columns>(
        dy + (tile.image * g.to_height + tile.row) * g.to_width * g.channels + channel, column0,
        g.to_width, g.channels, PlainInput::Values(), slopes);
#pragma unroll
    for (int c = 0; c < columns; ++c) bias.add(slopes[c], {1, 1});
#pragma unroll
    for (int h = 0; h < kernel; ++h) {
      const int row = tile.row * stride - g.top + h;
      if (row < 0 || row >= g.from_height) continue;
      Two values[kSpan];
      load_row<kSpan>(x + (tile.image * g.from_height + row) * g.from_width * g.channels + channel,
                      column0 * stride - g.left, g.from_width, g.channels, seen, values);
#pragma unroll
      for (int w = 0; w < kernel; ++w) {
#pragma unroll
        for (int c = 0; c < columns; ++c) sums[h][w].add(values[c * stride + w], slopes[c]);
      }
    }
  }
  const int lane = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  constexpr int kTaps = kernel * kernel;
  partial += static_cast<int64_t>(blockIdx.x) * (kTaps + 1) * g.channels + channel;
#pragma unroll
  for (int tap = 0; tap <= kTaps; ++tap) {
    shared[lane] = tap < kTaps ? sums[tap / kernel % kernel][tap % kernel] : bias;
    block_barrier();
    if (threadIdx.y == 0 && channel < g.channels) {
      Two sum = shared[lane];
      for (int y = 1; y < static_cast<int>(blockDim.y); ++y) {
        sum.add(shared[y * static_cast<int>(blockDim.x) + lane], {1, 1});
      }
      partial[tap * static_cast<int64_t>(g.channels)] = sum.a;
      partial[tap * static_cast<int64_t>(g.channels) + 1] = sum.b;
    }
    block_barrier();
  }
}

inline constexpr int kSumColumns = 32, kSumRows = 8;

template <typename T>
__global__ void add_weight_parts(int taps, int channels, const float* partial, int64_t parts,
                                 T* dweight, T* dbias) {
  __shared__ float shared[kSumRows][kSumColumns];
  const int64_t values = static_cast<int64_t>(taps + 1) * channels;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kSumColumns + threadIdx.x;
  float sum = 0;
  for (int64_t part = threadIdx.y; part < parts && i < values; part += kSumRows) {
    sum += partial[part * values + i];
  }
  shared[threadIdx.y][threadIdx.x] = sum;
  block_barrier();
  if (threadIdx.y != 0 || i >= values) return;
  for (int row = 1; row < kSumRows; ++row) sum += shared[row][threadIdx.x];
  const int64_t tap = quotient(i, channels), channel = i - tap * channels;
  if (tap < taps) {
    if (dweight) dweight[channel * taps + tap] = from_float<T>(sum);
  } else if (dbias) {
    dbias[channel] = from_float<T>(sum);
  }
}

// Pairs of channels in x: the most of 32, 16 or 8 that leave few threads without a channel.
inline dim3 block_of(const Convolution& c) {
  const int64_t pairs = c.channels / 2;
  int64_t width = kWarp;
  while (width > 8 && ceil_div(pairs, width) * width * 8 > pairs * 9) width /= 2;
  return dim3(static_cast<unsigned>(width), static_cast<unsigned>(kDepthwiseThreads / width));
}

inline int64_t channel_blocks(const Convolution& c) {
  return ceil_div(c.channels / 2, block_of(c).x);
}

// In tiles of rows x columns pixels of `to`.
inline Sides sides_of(const Convolution& c, const int64_t (&from)[2], const int64_t (&to)[2],
                      int64_t top, int64_t left, int64_t rows, int64_t columns, int64_t height,
                      int64_t width) {
  Sides g;
  g.channels = static_cast<int>(c.channels);
  g.from_height = static_cast<int>(from[0]);
  g.from_width = static_cast<int>(from[1]);
  g.to_height = static_cast<int>(to[0]);
  g.to_width = static_cast<int>(to[1]);
  g.top = static_cast<int>(top);
  g.left = static_cast<int>(left);
  g.tile_rows = static_cast<int>(ceil_div(height, rows));
  g.tile_columns = static_cast<int>(ceil_div(width, columns));
  g.tiles = c.batch * g.tile_rows * g.tile_columns;
  return g;
}

// Pixels of a tile. 7 columns divide the usual widths: 7, 14, 28, 56, 112.
inline constexpr int kConvolveRows = 4, kConvolveColumns = 7, kSpreadColumns = 8;
constexpr int gradient_columns(int stride) { return stride == 1 ? 7 : 4; }

inline dim3 grid_of(const Convolution& c, const Sides& g) {
  return dim3(blocks_for(g.tiles, block_of(c).y), static_cast<unsigned>(channel_blocks(c)));
}

inline size_t shared_of(const Convolution& c) {
  return static_cast<size_t>(c.window.kernel[0] * c.window.kernel[1]) * 2 * block_of(c).x *
         sizeof(float);
}

// Calls body with the window's size, as a type.
template <int value>
struct Number {
  static constexpr int kValue = value;
};
template <typename Body>
void with_kernel(int64_t size, Body body) {
  if (size == 3) return body(Number<3>());
  if (size == 5) return body(Number<5>());
  body(Number<7>());
}

inline Sides gradient_sides(const Convolution& c) {
  const int columns = gradient_columns(static_cast<int>(c.window.strides[0]));
  return sides_of(c, c.in, c.out, c.window.paddings[0], c.window.paddings[1], 1, columns, c.out[0],
                  c.out[1]);
}

inline int64_t gradient_parts(const Convolution& c) {
  constexpr int64_t kBlocks = 1056, kMostParts = 256, kLeastTiles = 4;  // tiles a thread
  const int64_t most = gradient_sides(c).tiles / (kLeastTiles * block_of(c).y);
  return std::clamp<int64_t>(ceil_div(kBlocks, channel_blocks(c)), 1,
                             std::clamp<int64_t>(most, 1, kMostParts));
}

// dweight and dbias (either may be null) from x as `input` sees it.
template <int size, typename T, typename Input>
void run_weight_gradient(const Convolution& c, const void* x, const Input& input, const void* dy,
                         void* dweight, void* dbias, void* workspace, cudaStream_t stream) {
  const Sides g = gradient_sides(c);
  const int64_t parts = gradient_parts(c);
  float* partial = static_cast<float*>(workspace);
  const auto kernel = c.window.strides[0] == 1
                          ? sum_weight_tiles<size, 1, gradient_columns(1), T, Input>
                          : sum_weight_tiles<size, 2, gradient_columns(2), T, Input>;
  const dim3 grid(static_cast<unsigned>(parts), static_cast<unsigned>(channel_blocks(c)));
  launch(kernel, grid, block_of(c), 0, stream, g, ceil_div(g.tiles, parts),
         static_cast<const T*>(x), input, static_cast<const T*>(dy), partial);
  constexpr int kTaps = size * size;
  launch(add_weight_parts<T>, blocks_for((kTaps + 1) * c.channels, kSumColumns),
         dim3(kSumColumns, kSumRows), 0, stream, kTaps, static_cast<int>(c.channels), partial,
         parts, static_cast<T*>(dweight), static_cast<T*>(dbias));
}

}  // namespace fleet::cuda
