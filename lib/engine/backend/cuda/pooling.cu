#include <algorithm>

#include "backend/cuda/pooling.h"
#include "backend/cuda/types.h"

namespace fleet::cuda {
namespace {

// The parameters of a kernel, small enough for 32-bit arithmetic within an image.
struct Sizes {
  int batch, channels, in[2], out[2], kernel[2], strides[2], paddings[2];
  bool exclusive;
};

// A thread computes a pack of channels of one pixel: blockIdx.z is the image, blockIdx.y the row.
struct Pixel {
  int row, column, channel;
  bool inside;
};
template <int pack>
__device__ inline Pixel pixel_of(const int (&size)[2], int channels) {
  const int packs = channels / pack;
  const int unit = static_cast<int>(blockIdx.x) * kBlock + static_cast<int>(threadIdx.x);
  Pixel p;
  p.row = static_cast<int>(blockIdx.y);
  p.column = unit / packs;
  p.channel = unit % packs * pack;
  p.inside = p.column < size[1];
  return p;
}

__device__ inline int64_t at(int64_t image, const int (&size)[2], int row, int column, int channels,
                             int channel) {
  return ((image * size[0] + row) * size[1] + column) * channels + channel;
}

// The part of a window inside the image: [first, last) of its rows or columns.
struct Range {
  int first, last;
};
__device__ inline Range clipped(const Sizes& s, int d, int index) {
  const int begin = index * s.strides[d] - s.paddings[d];
  const int past = begin + s.kernel[d] - s.in[d];
  return {begin < 0 ? -begin : 0, past > 0 ? s.kernel[d] - past : s.kernel[d]};
}

template <int pack, typename Index, typename T>
__global__ void take_maxima(Sizes s, const T* x, T* y, Index* mask) {
  const Pixel p = pixel_of<pack>(s.out, s.channels);
  if (!p.inside) return;
  const Range rows = clipped(s, 0, p.row), columns = clipped(s, 1, p.column);
  const int top = p.row * s.strides[0] - s.paddings[0];
  const int left = p.column * s.strides[1] - s.paddings[1];
  for (int64_t image = blockIdx.z; image < s.batch; image += gridDim.z) {
    Pack<float, pack> best;
    Pack<Index, pack> where;
#pragma unroll
    for (int i = 0; i < pack; ++i) {
      best.at[i] = -INFINITY;
      where.at[i] = static_cast<Index>(rows.first * s.kernel[1] + columns.first);
    }
    for (int r = rows.first; r < rows.last; ++r) {
      for (int c = columns.first; c < columns.last; ++c) {
        const auto values =
            load_floats<pack>(x, at(image, s.in, top + r, left + c, s.channels, p.channel));
#pragma unroll
        for (int i = 0; i < pack; ++i) {
          // Propagates NaN.
          if (values.at[i] <= best.at[i] || best.at[i] != best.at[i]) continue;
          best.at[i] = values.at[i];
          where.at[i] = static_cast<Index>(r * s.kernel[1] + c);
        }
      }
    }
    const int64_t to = at(image, s.out, p.row, p.column, s.channels, p.channel);
    store_floats<pack>(y, to, best);
    if (mask) store_pack<pack>(mask, to, where);
  }
}

__device__ inline float share_of(const Sizes& s, const Range& rows, const Range& columns) {
  const int count = s.exclusive ? (rows.last - rows.first) * (columns.last - columns.first)
                                : s.kernel[0] * s.kernel[1];
  return 1 / static_cast<float>(count);
}

template <int pack, typename T>
__global__ void take_means(Sizes s, const T* x, T* y) {
  const Pixel p = pixel_of<pack>(s.out, s.channels);
  if (!p.inside) return;
  const Range rows = clipped(s, 0, p.row), columns = clipped(s, 1, p.column);
  const int top = p.row * s.strides[0] - s.paddings[0];
  const int left = p.column * s.strides[1] - s.paddings[1];
  const float share = share_of(s, rows, columns);
  for (int64_t image = blockIdx.z; image < s.batch; image += gridDim.z) {
    Pack<float, pack> sum = {};
    for (int r = rows.first; r < rows.last; ++r) {
      for (int c = columns.first; c < columns.last; ++c) {
        const auto values =
            load_floats<pack>(x, at(image, s.in, top + r, left + c, s.channels, p.channel));
#pragma unroll
        for (int i = 0; i < pack; ++i) sum.at[i] += values.at[i];
      }
    }
#pragma unroll
    for (int i = 0; i < pack; ++i) sum.at[i] *= share;
    store_floats<pack>(y, at(image, s.out, p.row, p.column, s.channels, p.channel), sum);
  }
}

// The windows that contain a row or column of the image: [first, last) of y's.
__device__ inline Range windows_over(const Sizes& s, int d, int index) {
  const int from = index + s.paddings[d];
  const int first = from < s.kernel[d] ? 0 : (from - s.kernel[d]) / s.strides[d] + 1;
  const int last = from / s.strides[d] + 1;
  return {first, last < s.out[d] ? last : s.out[d]};
}

// Each pixel gathers from the windows that contain it, so that no two threads add to the same
// value.
template <int pack, bool is_max, typename Index, typename T>
__global__ void gather(Sizes s, const T* dy, const Index* mask, T* dx) {
  const Pixel p = pixel_of<pack>(s.in, s.channels);
  if (!p.inside) return;
  const Range over_rows = windows_over(s, 0, p.row), over_columns = windows_over(s, 1, p.column);
  for (int64_t image = blockIdx.z; image < s.batch; image += gridDim.z) {
    Pack<float, pack> sum = {};
    for (int row = over_rows.first; row < over_rows.last; ++row) {
      for (int column = over_columns.first; column < over_columns.last; ++column) {
        const int64_t from = at(image, s.out, row, column, s.channels, p.channel);
        const auto gradient = load_floats<pack>(dy, from);
        if (is_max) {
          const auto where = load_pack<pack>(mask, from);
          const int r = p.row + s.paddings[0] - row * s.strides[0];
          const int c = p.column + s.paddings[1] - column * s.strides[1];
          const Index here = static_cast<Index>(r * s.kernel[1] + c);
#pragma unroll
          for (int i = 0; i < pack; ++i) sum.at[i] += where.at[i] == here ? gradient.at[i] : 0;
        } else {
          const float share = share_of(s, clipped(s, 0, row), clipped(s, 1, column));
#pragma unroll
          for (int i = 0; i < pack; ++i) sum.at[i] += gradient.at[i] * share;
        }
      }
    }
    store_floats<pack>(dx, at(image, s.in, p.row, p.column, s.channels, p.channel), sum);
  }
}

Sizes sizes_of(const Pooling& p) {
  Sizes s{.batch = static_cast<int>(p.batch),
          .channels = static_cast<int>(p.channels),
          .exclusive = p.exclusive};
  for (int d = 0; d < 2; ++d) {
    s.in[d] = static_cast<int>(p.in[d]);
    s.out[d] = static_cast<int>(p.out[d]);
    s.kernel[d] = static_cast<int>(p.window.kernel[d]);
    s.strides[d] = static_cast<int>(p.window.strides[d]);
    s.paddings[d] = static_cast<int>(p.window.paddings[d]);
  }
  return s;
}

// Rows are the grid's second dimension, at most 65535. Kernels loop over images beyond that limit.
dim3 grid_of(const Pooling& p, const int64_t (&size)[2], int pack) {
  if (size[0] > 65535) {
    throw Error(ErrorCode::kUnsupported,
                "pool2d of an image of " + std::to_string(size[0]) + " rows");
  }
  return dim3(blocks_for(size[1] * (p.channels / pack)), static_cast<unsigned>(size[0]),
              static_cast<unsigned>(std::min<int64_t>(p.batch, 65535)));
}

bool has_small_index(const Pooling& p) { return p.window.kernel[0] * p.window.kernel[1] <= 256; }

// Calls body(T(), pack, Index()). The mask's elements are as small as the window allows.
template <typename Body>
void dispatch_pooling(const Pooling& p, Body body) {
  dispatch(p.dtype, [&](auto type) {
    using T = decltype(type);
    const auto indexed = [&](auto pack) {
      has_small_index(p) ? body(type, pack, uint8_t()) : body(type, pack, uint32_t());
    };
    if (p.channels % kPack<T> == 0) {
      indexed(std::integral_constant<int, kPack<T>>());
    } else {
      indexed(std::integral_constant<int, 1>());
    }
  });
}

}  // namespace

int64_t pooling_mask_bytes(const Pooling& p) {
  return p.batch * p.out[0] * p.out[1] * p.channels * (has_small_index(p) ? 1 : 4);
}

void pooling_forward(const Pooling& p, const void* x, void* y, void* mask, cudaStream_t stream) {
  dispatch_pooling(p, [&](auto type, auto pack, auto index) {
    using T = decltype(type);
    using Index = decltype(index);
    constexpr int kSize = decltype(pack)::value;
    const dim3 grid = grid_of(p, p.out, kSize);
    const T* from = static_cast<const T*>(x);
    T* to = static_cast<T*>(y);
    if (p.is_max) {
      launch(take_maxima<kSize, Index, T>, grid, kBlock, 0, stream, sizes_of(p), from, to,
             static_cast<Index*>(mask));
    } else {
      launch(take_means<kSize, T>, grid, kBlock, 0, stream, sizes_of(p), from, to);
    }
  });
}

void pooling_backward(const Pooling& p, const void* dy, const void* mask, void* dx,
                      cudaStream_t stream) {
  dispatch_pooling(p, [&](auto type, auto pack, auto index) {
    using T = decltype(type);
    using Index = decltype(index);
    constexpr int kSize = decltype(pack)::value;
    launch(p.is_max ? gather<kSize, true, Index, T> : gather<kSize, false, Index, T>,
           grid_of(p, p.in, kSize), kBlock, 0, stream, sizes_of(p), static_cast<const T*>(dy),
           static_cast<const Index*>(mask), static_cast<T*>(dx));
  });
}

}  // namespace fleet::cuda
