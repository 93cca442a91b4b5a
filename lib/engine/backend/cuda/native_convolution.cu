#include <algorithm>

#include "backend/cuda/depthwise.h"
#include "backend/cuda/native_convolution.h"
#include "backend/cuda/types.h"

namespace fleet::cuda {
namespace {

// A block's columns are packs of channels; its rows are pixels.
constexpr int kColumns = 32, kRows = 8;
constexpr int kPixels = 64;              // per block
constexpr size_t kMaxShared = 48 << 10;  // bytes

// A Convolution in 32 bits, for kernels.
struct Geometry {
  int height[2], width[2];  // x, y
  int kernel[2], stride[2], padding[2], dilation[2];
  int64_t batch, channels, filters, groups;
  int64_t pixel[2];  // elements from one pixel to the next, of x and of y
  __host__ __device__ int taps() const { return kernel[0] * kernel[1]; }
  __host__ __device__ int64_t pixels(int side) const { return batch * height[side] * width[side]; }

  // The row of y that a row of x contributes to through this kernel row, or the row of x that a row
  // of y reads; below 0: none. d: 0 for rows, 1 for columns.
  __device__ int y_of_x(int x, int tap, int d) const {
    const int shifted = x + padding[d] - tap * dilation[d];
    if (shifted < 0 || shifted % stride[d] != 0) return -1;
    const int y = shifted / stride[d];
    return y < (d == 0 ? height[1] : width[1]) ? y : -1;
  }
  __device__ int x_of_y(int y, int tap, int d) const {
    const int x = y * stride[d] - padding[d] + tap * dilation[d];
    return x < (d == 0 ? height[0] : width[0]) ? x : -1;
  }
};

Geometry geometry_of(const Convolution& c) {
  Geometry g{};
  const int64_t* sizes[2] = {c.in, c.out};
  for (int side = 0; side < 2; ++side) {
    g.height[side] = static_cast<int>(sizes[side][0]);
    g.width[side] = static_cast<int>(sizes[side][1]);
  }
  for (int d = 0; d < 2; ++d) {
    g.kernel[d] = static_cast<int>(c.window.kernel[d]);
    g.stride[d] = static_cast<int>(c.window.strides[d]);
    g.padding[d] = static_cast<int>(c.window.paddings[d]);
    g.dilation[d] = static_cast<int>(c.window.dilations[d]);
  }
  g.batch = c.batch;
  g.channels = c.channels;
  g.filters = c.filters;
  g.groups = c.groups;
  g.pixel[0] = c.in_pixel;
  g.pixel[1] = c.out_pixel;
  return g;
}

// A pixel of one side: image, row, column.
struct Pixel {
  int64_t image;
  int row, column;
  __device__ Pixel(const Geometry& g, int side, int64_t pixel) {
    const int64_t line = quotient(pixel, g.width[side]);
    column = static_cast<int>(pixel - line * g.width[side]);
    image = quotient(line, g.height[side]);
    row = static_cast<int>(line - image * g.height[side]);
  }
};

// The pixel of the other side that a pixel of side `to` is connected to by a tap, or -1.
template <int to>
__device__ inline int64_t other_pixel(const Geometry& g, const Pixel& at, int tap) {
  const int h = tap / g.kernel[1], w = tap - h * g.kernel[1];
  const int row = to == 1 ? g.x_of_y(at.row, h, 0) : g.y_of_x(at.row, h, 0);
  const int column = to == 1 ? g.x_of_y(at.column, w, 1) : g.y_of_x(at.column, w, 1);
  if (row < 0 || column < 0) return -1;
  return (at.image * g.height[1 - to] + row) * g.width[1 - to] + column;
}

// The part of `values` that relu passes: where x is above 0 or NaN.
template <int pack>
__device__ inline void mask(Pack<float, pack>& values, const Pack<float, pack>& x) {
#pragma unroll
  for (int i = 0; i < pack; ++i) values.at[i] = x.at[i] <= 0 ? 0 : values.at[i];
}

// Computes side `to` from the other side, with separate taps per channel: y from x (to = 1), or dx
// from dy (to = 0). The taps are in shared memory as [tap][channel], so that accesses are
// contiguous. relu: applied to x, so dx is masked by x.
template <int pack, int to, bool relu, typename T>
__global__ void depthwise(Geometry g, const T* from, const T* weight, const T* bias, const T* x,
                          T* target) {
  float* taps = dynamic_shared<float>();
  const int lane = threadIdx.y * kColumns + threadIdx.x;
  const int64_t first = static_cast<int64_t>(blockIdx.y) * kColumns * pack;
  for (int i = lane; i < g.taps() * kColumns * pack; i += kColumns * kRows) {
    const int64_t channel = first + i / g.taps();
    const int tap = i % g.taps();
    taps[tap * kColumns * pack + i / g.taps()] =
        channel < g.channels ? to_float(weight[channel * g.taps() + tap]) : 0;
  }
  block_barrier();
  const int64_t channel = first + threadIdx.x * pack;
  if (channel >= g.pixel[to]) return;
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * kPixels, pixels = g.pixels(to);
  const int64_t end = begin + kPixels < pixels ? begin + kPixels : pixels;
  for (int64_t pixel = begin + threadIdx.y; pixel < end; pixel += kRows) {
    const Pixel at(g, to, pixel);
    Pack<float, pack> sum;
#pragma unroll
    for (int i = 0; i < pack; ++i) {
      sum.at[i] = bias && channel + i < g.channels ? to_float(bias[channel + i]) : 0;
    }
    for (int tap = 0; tap < g.taps() && channel < g.channels; ++tap) {
      const int64_t source = other_pixel<to>(g, at, tap);
      if (source < 0) continue;
      auto values = load_floats<pack>(from, source * g.pixel[1 - to] + channel);
      if constexpr (relu && to == 1) mask(values, values);
      const float* own = taps + (tap * kColumns + threadIdx.x) * pack;
#pragma unroll
      for (int i = 0; i < pack; ++i) sum.at[i] += values.at[i] * own[i];
    }
    const int64_t at_target = pixel * g.pixel[to] + channel;
    if constexpr (relu && to == 0) mask(sum, load_floats<pack>(x, at_target));
    store_floats<pack>(target, at_target, sum);
  }
}

template <int pack, int to, bool relu, typename T>
bool try_depthwise(const Geometry& g, const T* from, const T* weight, const T* bias, const T* x,
                   T* target, cudaStream_t stream) {
  const size_t shared = static_cast<size_t>(g.taps()) * kColumns * pack * sizeof(float);
  if (g.pixel[0] % pack != 0 || g.pixel[1] % pack != 0 || shared > kMaxShared) return false;
  const dim3 grid(blocks_for(g.pixels(to), kPixels), blocks_for(g.pixel[to], kColumns * pack));
  launch(depthwise<pack, to, relu, T>, grid, dim3(kColumns, kRows), shared, stream, g, from, weight,
         bias, x, target);
  return true;
}

template <int to, bool relu>
void run_depthwise(const Convolution& c, const void* from, const void* weight, const void* bias,
                   const void* x, void* target, cudaStream_t stream) {
  const Geometry g = geometry_of(c);
  const bool done = dispatch(c.dtype, [&](auto type) {
    using T = decltype(type);
    const T *f = static_cast<const T*>(from), *w = static_cast<const T*>(weight);
    const T *b = static_cast<const T*>(bias), *m = static_cast<const T*>(x);
    T* t = static_cast<T*>(target);
    return try_depthwise<kPack<T>, to, relu, T>(g, f, w, b, m, t, stream) ||
           try_depthwise<1, to, relu, T>(g, f, w, b, m, t, stream);
  });
  FLEET_CHECK(done, "a depthwise kernel has too many taps");
}

// dweight and dbias: a block sums one tap (the bias is an additional last tap) of its channels over
// its part of the pixels of y.
int64_t parts_of(const Convolution& c) {
  return std::clamp<int64_t>(c.batch * c.out[0] * c.out[1] / 2048, 1, 64);
}

template <int pack, bool relu, typename T>
__global__ void weight_parts(Geometry g, const T* x, const T* dy, int64_t part_pixels,
                             float* partial) {
  __shared__ float rows[kRows][kColumns * pack];
  const int64_t channel = (static_cast<int64_t>(blockIdx.x) * kColumns + threadIdx.x) * pack;
  const int tap = static_cast<int>(blockIdx.z);
  const int64_t begin = blockIdx.y * part_pixels, pixels = g.pixels(1);
  const int64_t end = begin + part_pixels < pixels ? begin + part_pixels : pixels;
  float sums[pack] = {};
  for (int64_t pixel = begin + threadIdx.y; pixel < end && channel < g.channels; pixel += kRows) {
    const auto slope = load_floats<pack>(dy, pixel * g.pixel[1] + channel);
    if (tap == g.taps()) {
#pragma unroll
      for (int i = 0; i < pack; ++i) sums[i] += slope.at[i];
      continue;
    }
    const int64_t source = other_pixel<1>(g, Pixel(g, 1, pixel), tap);
    if (source < 0) continue;
    auto values = load_floats<pack>(x, source * g.pixel[0] + channel);
    if constexpr (relu) mask(values, values);
#pragma unroll
    for (int i = 0; i < pack; ++i) sums[i] += values.at[i] * slope.at[i];
  }
#pragma unroll
  for (int i = 0; i < pack; ++i) rows[threadIdx.y][threadIdx.x * pack + i] = sums[i];
  block_barrier();
  if (threadIdx.y != 0) return;
  const int64_t at = (static_cast<int64_t>(blockIdx.y) * (g.taps() + 1) + tap) * g.channels;
#pragma unroll
  for (int i = 0; i < pack; ++i) {
    float sum = 0;
    for (int row = 0; row < kRows; ++row) sum += rows[row][threadIdx.x * pack + i];
    if (channel + i < g.channels) partial[at + channel + i] = sum;
  }
}

template <typename T>
__global__ void sum_weights(Geometry g, const float* partial, int64_t parts, T* dweight, T* dbias) {
  const int64_t i = thread_index();
  const int64_t values = (g.taps() + 1) * g.channels;
  if (i >= values) return;
  float sum = 0;
  for (int64_t part = 0; part < parts; ++part) sum += partial[part * values + i];
  const int64_t tap = i / g.channels, channel = i % g.channels;
  if (tap < g.taps()) {
    if (dweight) dweight[channel * g.taps() + tap] = from_float<T>(sum);
  } else if (dbias) {
    dbias[channel] = from_float<T>(sum);
  }
}

// One thread per pack of channels of an output pixel: all threads of the pixel read the same
// filters, and accesses to weights are contiguous.
template <int pack, typename T>
__global__ void transposed(Geometry g, const T* input, const T* weight, const T* bias, T* output,
                           int64_t packs) {
  const int64_t unit = thread_index();
  if (unit >= packs) return;
  const int64_t columns = g.pixel[0] / pack;
  const int64_t pixel = quotient(unit, columns), channel = (unit - pixel * columns) * pack;
  const int64_t group_channels = g.channels / g.groups, group_filters = g.filters / g.groups;
  Pack<float, pack> sum;
#pragma unroll
  for (int i = 0; i < pack; ++i) {
    sum.at[i] = bias && channel + i < g.channels ? to_float(bias[channel + i]) : 0;
  }
  if (channel < g.channels) {
    const Pixel at(g, 0, pixel);
    const int64_t group = quotient(channel, group_channels), own = channel - group * group_channels;
    for (int tap = 0; tap < g.taps(); ++tap) {
      const int64_t source = other_pixel<0>(g, at, tap);
      if (source < 0) continue;
      const T* values = input + source * g.pixel[1] + group * group_filters;
      const T* weights = weight + (group * group_filters * g.taps() + tap) * group_channels + own;
      for (int64_t f = 0; f < group_filters; ++f) {
        const float value = to_float(values[f]);
        const auto row = load_floats<pack>(weights, f * g.taps() * group_channels);
#pragma unroll
        for (int i = 0; i < pack; ++i) sum.at[i] += value * row.at[i];
      }
    }
  }
  store_floats<pack>(output, pixel * g.pixel[0] + channel, sum);
}

}  // namespace

bool is_depthwise(const Convolution& c) {
  return c.groups == c.channels && c.channels == c.filters &&
         static_cast<size_t>(c.window.kernel[0] * c.window.kernel[1]) * kColumns * sizeof(float) <=
             kMaxShared;
}

void depthwise_forward(const Convolution& c, const void* x, const void* weight, const void* bias,
                       void* y, cudaStream_t stream) {
  if (takes_depthwise_tiles(c)) return depthwise_tiles_forward(c, x, weight, bias, y, stream);
  const auto run = c.relu ? run_depthwise<1, true> : run_depthwise<1, false>;
  run(c, x, weight, bias, nullptr, y, stream);
}

void depthwise_data_grad(const Convolution& c, const void* weight, const void* dy, const void* x,
                         void* dx, cudaStream_t stream) {
  if (takes_depthwise_tiles(c)) return depthwise_tiles_data_grad(c, weight, dy, dx, stream);
  const auto run = c.relu ? run_depthwise<0, true> : run_depthwise<0, false>;
  run(c, dy, weight, nullptr, x, dx, stream);
}

size_t depthwise_weight_grad_workspace(const Convolution& c) {
  if (takes_depthwise_tiles(c)) return depthwise_tiles_weight_grad_workspace(c);
  const int64_t taps = c.window.kernel[0] * c.window.kernel[1];
  return static_cast<size_t>(parts_of(c) * (taps + 1) * c.channels) * sizeof(float);
}

void depthwise_weight_grad(const Convolution& c, const void* x, const void* dy, void* dweight,
                           void* dbias, void* workspace, cudaStream_t stream) {
  if (takes_depthwise_tiles(c)) {
    return depthwise_tiles_weight_grad(c, x, dy, dweight, dbias, workspace, stream);
  }
  const Geometry g = geometry_of(c);
  const int64_t parts = parts_of(c);
  float* partial = static_cast<float*>(workspace);
  dispatch(c.dtype, [&](auto type) {
    using T = decltype(type);
    const bool wide = g.pixel[0] % kPack<T> == 0 && g.pixel[1] % kPack<T> == 0;
    const dim3 grid(blocks_for(g.channels, wide ? kColumns * kPack<T> : kColumns),
                    static_cast<unsigned>(parts), static_cast<unsigned>(g.taps() + 1));
    const auto plain = wide ? weight_parts<kPack<T>, false, T> : weight_parts<1, false, T>;
    const auto masked = wide ? weight_parts<kPack<T>, true, T> : weight_parts<1, true, T>;
    launch(c.relu ? masked : plain, grid, dim3(kColumns, kRows), 0, stream, g,
           static_cast<const T*>(x), static_cast<const T*>(dy), ceil_div(g.pixels(1), parts),
           partial);
    launch(sum_weights<T>, blocks_for((g.taps() + 1) * g.channels), kBlock, 0, stream, g, partial,
           parts, static_cast<T*>(dweight), static_cast<T*>(dbias));
  });
}

// Uses no tensor cores: pays off if the whole product is small compared with a library launch.
bool prefers_own_transposed(const Convolution& c) {
  const int64_t products =
      c.out[0] * c.out[1] * c.window.kernel[0] * c.window.kernel[1] * c.channels * c.filters;
  return c.batch == 1 && c.groups == 1 && products <= int64_t{1} << 26;
}

void transposed_forward(const Convolution& c, const void* input, const void* weight,
                        const void* bias, void* output, cudaStream_t stream) {
  const Geometry g = geometry_of(c);
  dispatch(c.dtype, [&](auto type) {
    using T = decltype(type);
    const bool wide = g.pixel[0] % kPack<T> == 0 && g.channels / g.groups % kPack<T> == 0;
    const int64_t packs = g.pixels(0) * g.pixel[0] / (wide ? kPack<T> : 1);
    launch(wide ? transposed<kPack<T>, T> : transposed<1, T>, blocks_for(packs), kBlock, 0, stream,
           g, static_cast<const T*>(input), static_cast<const T*>(weight),
           static_cast<const T*>(bias), static_cast<T*>(output), packs);
  });
}

}  // namespace fleet::cuda
