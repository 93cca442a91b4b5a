#include "backend/cuda/depthwise_tiles.h"

namespace fleet::cuda {
namespace {

// y from x, and with the taps turned dx from dy where the stride is 1.
template <int kernel, int stride, int rows, int columns, typename T>
__global__ void __launch_bounds__(kDepthwiseThreads)
    convolve_tiles(Sides g, bool turned, const T* from, const T* weight, const T* bias, T* to) {
  float* taps = dynamic_shared<float>();
  const int own = 2 * static_cast<int>(blockDim.x);
  const int64_t first = static_cast<int64_t>(blockIdx.y) * own;
  load_taps<kernel * kernel>(weight, g.channels, first, turned, taps);
  const int64_t channel = first + 2 * threadIdx.x;
  const int64_t number = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (channel >= g.channels || number >= g.tiles) return;
  const Tile tile(g, number);
  from += tile.image * g.from_height * g.from_width * g.channels + channel;
  to += tile.image * g.to_height * g.to_width * g.channels + channel;
  const Two start = bias ? load_two(bias + channel) : Two();
  convolve_tile<kernel, stride, rows, columns>(
      g, tile, from, taps + 2 * threadIdx.x, start, PlainInput::Values(),
      [&](int row, int column, const Two& sum) {
        store_two(to + (static_cast<int64_t>(row) * g.to_width + column) * g.channels, sum);
      });
}

// dx from dy for steps of 2.
template <int kernel, int rows, int columns, typename T>
__global__ void __launch_bounds__(kDepthwiseThreads)
    spread_tiles(Sides g, const T* from, const T* weight, T* to) {
  float* taps = dynamic_shared<float>();
  const int own = 2 * static_cast<int>(blockDim.x);
  const int64_t first = static_cast<int64_t>(blockIdx.y) * own;
  load_taps<kernel * kernel>(weight, g.channels, first, false, taps);
  const int64_t channel = first + 2 * threadIdx.x;
  const int64_t number = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (channel >= g.channels || number >= g.tiles) return;
  const Tile tile(g, number);
  from += tile.image * g.from_height * g.from_width * g.channels + channel;
  to += tile.image * g.to_height * g.to_width * g.channels + channel;
  spread_tile<kernel, rows, columns>(
      g, tile, from, taps + 2 * threadIdx.x, [&](int row, int column, const Two& sum) {
        store_two(to + (static_cast<int64_t>(row) * g.to_width + column) * g.channels, sum);
      });
}

template <int stride>
void convolve(const Convolution& c, const Sides& g, bool turned, const void* from,
              const void* weight, const void* bias, void* to, cudaStream_t stream) {
  dispatch(c.dtype, [&](auto type) {
    using T = decltype(type);
    with_kernel(c.window.kernel[0], [&](auto size) {
      launch(convolve_tiles<size.kValue, stride, kConvolveRows, kConvolveColumns, T>, grid_of(c, g),
             block_of(c), shared_of(c), stream, g, turned, static_cast<const T*>(from),
             static_cast<const T*>(weight), static_cast<const T*>(bias), static_cast<T*>(to));
    });
  });
}

}  // namespace

bool takes_depthwise_tiles(const Convolution& c) {
  const Window& w = c.window;
  const bool size = w.kernel[0] == 3 || w.kernel[0] == 5 || w.kernel[0] == 7;
  const bool steps = w.strides[0] == 1 || w.strides[0] == 2;
  constexpr int64_t kMostChannels = int64_t{1} << 20;  // blockIdx.y
  return is_depthwise(c) && size && steps && w.kernel[1] == w.kernel[0] &&
         w.strides[1] == w.strides[0] && w.dilations[0] == 1 && w.dilations[1] == 1 &&
         w.paddings[0] < w.kernel[0] && w.paddings[1] < w.kernel[0] && c.channels % 2 == 0 &&
         c.channels <= kMostChannels && c.in_pixel == c.channels && c.out_pixel == c.channels &&
         !c.relu;
}

void depthwise_tiles_forward(const Convolution& c, const void* x, const void* weight,
                             const void* bias, void* y, cudaStream_t stream) {
  const Sides g = sides_of(c, c.in, c.out, c.window.paddings[0], c.window.paddings[1],
                           kConvolveRows, kConvolveColumns, c.out[0], c.out[1]);
  const auto run = c.window.strides[0] == 1 ? convolve<1> : convolve<2>;
  run(c, g, false, x, weight, bias, y, stream);
}

void depthwise_tiles_data_grad(const Convolution& c, const void* weight, const void* dy, void* dx,
                               cudaStream_t stream) {
  const Window& window = c.window;
  const int64_t top = window.paddings[0], left = window.paddings[1];
  if (window.strides[0] == 1) {
    const int64_t last = window.kernel[0] - 1;
    const Sides g = sides_of(c, c.out, c.in, last - top, last - left, kConvolveRows,
                             kConvolveColumns, c.in[0], c.in[1]);
    return convolve<1>(c, g, true, dy, weight, nullptr, dx, stream);
  }
  const Sides g = sides_of(c, c.out, c.in, top, left, kConvolveRows, kSpreadColumns, c.in[0] + top,
                           c.in[1] + left);
  dispatch(c.dtype, [&](auto type) {
    using T = decltype(type);
    with_kernel(window.kernel[0], [&](auto size) {
      launch(spread_tiles<size.kValue, kConvolveRows, kSpreadColumns, T>, grid_of(c, g),
             block_of(c), shared_of(c), stream, g, static_cast<const T*>(dy),
             static_cast<const T*>(weight), static_cast<T*>(dx));
    });
  });
}

size_t depthwise_tiles_weight_grad_workspace(const Convolution& c) {
  const int64_t taps = c.window.kernel[0] * c.window.kernel[1];
  return static_cast<size_t>(gradient_parts(c) * (taps + 1) * c.channels) * sizeof(float);
}

void depthwise_tiles_weight_grad(const Convolution& c, const void* x, const void* dy, void* dweight,
                                 void* dbias, void* workspace, cudaStream_t stream) {
  dispatch(c.dtype, [&](auto type) {
    using T = decltype(type);
    with_kernel(c.window.kernel[0], [&](auto size) {
      run_weight_gradient<size.kValue, T>(c, x, PlainInput(), dy, dweight, dbias, workspace,
                                          stream);
    });
  });
}

}  // namespace fleet::cuda
