// Depthwise convolutions with the batch normalizations around them.
#include <limits>

#include "backend/cuda/depthwise_tiles.h"
#include "backend/cuda/norm_tiles.h"
#include "ops/activation_formulas.h"

namespace fleet::cuda {
namespace {

// No activation, relu and relu6, which differ in their bounds. NaN passes.
struct Bounds {
  float low, high;
  __device__ float of(float u) const { return u < low ? low : (u > high ? high : u); }
  __device__ float slope(float u, float dy) const { return ((u <= low) | (u >= high)) ? 0 : dy; }
};
struct HardSwishOf {
  __device__ float of(float u) const { return HardSwish()(u); }
  __device__ float slope(float u, float dy) const { return HardSwishGrad()(u, dy); }
};

// Calls body with one of them.
template <typename Body>
void with_activation(NormActivation activation, Body body) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  switch (activation) {
    case NormActivation::kNone:
      return body(Bounds{-kInfinity, kInfinity});
    case NormActivation::kRelu:
      return body(Bounds{0, kInfinity});
    case NormActivation::kRelu6:
      return body(Bounds{0, 6});
    case NormActivation::kHardSwish:
      return body(HardSwishOf());
    default:
      FLEET_CHECK(false, "depthwise kernels do not compute this activation");
  }
}

// activation(factor x + constant)
template <typename Activation>
struct NormInput {
  const float *factor, *constant;
  Activation activation;
  struct Values {
    Two factor, constant;
    Activation activation;
    __device__ Two operator()(const Two& x) const {
      return {activation.of(x.a * factor.a + constant.a),
              activation.of(x.b * factor.b + constant.b)};
    }
  };
  __device__ Values at(int64_t channel) const {
    return {load_two(factor + channel), load_two(constant + channel), activation};
  }
};

// Calls body with what the input is seen through.
template <typename Body>
void with_input(const DepthwiseInput& input, Body body) {
  if (!input.factor) return body(PlainInput());
  with_activation(input.activation, [&](auto activation) {
    body(NormInput<decltype(activation)>{input.factor, input.constant, activation});
  });
}

// Adds two sums per channel over the block's threads; partial[block][2][channels].
__device__ inline void store_block_sums(int64_t channels, int64_t channel, const Two& first,
                                        const Two& second, float* partial) {
  __shared__ Two sums[2][kDepthwiseThreads];
  const int width = static_cast<int>(blockDim.x);
  const int lane = static_cast<int>(threadIdx.y) * width + static_cast<int>(threadIdx.x);
  sums[0][lane] = first;
  sums[1][lane] = second;
  block_barrier();
  if (threadIdx.y != 0 || channel >= channels) return;
  for (int which = 0; which < 2; ++which) {
    Two sum = sums[which][lane];
    for (int y = 1; y < static_cast<int>(blockDim.y); ++y) {
      sum.add(sums[which][y * width + lane], {1, 1});
    }
    float* to = partial + (static_cast<int64_t>(blockIdx.x) * 2 + which) * channels + channel;
    to[0] = sum.a;
    to[1] = sum.b;
  }
}

template <typename T>
__device__ inline Two rounded(const Two& values) {
  return {to_float(from_float<T>(values.a)), to_float(from_float<T>(values.b))};
}

// y from x, and the sums of y - pivot and of its square.
template <int kernel, int stride, int rows, int columns, typename T, typename Input>
__global__ void __launch_bounds__(kDepthwiseThreads)
    convolve_and_sum(Sides g, const T* from, const T* weight, Input input, const float* pivot,
                     T* to, float* partial) {
  float* taps = dynamic_shared<float>();
  const int own = 2 * static_cast<int>(blockDim.x);
  const int64_t first = static_cast<int64_t>(blockIdx.y) * own;
  load_taps<kernel * kernel>(weight, g.channels, first, false, taps);
  taps += 2 * threadIdx.x;
  const int64_t channel = first + 2 * threadIdx.x;
  Two sum, squares;
  if (channel < g.channels) {
    const auto seen = input.at(channel);
    const Two center = pivot ? load_two(pivot + channel) : Two();
    const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.y;
    int64_t number = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
#pragma unroll 1
    for (; number < g.tiles; number += step) {
      const Tile tile(g, number);
      T* image = to + tile.image * g.to_height * g.to_width * g.channels + channel;
      convolve_tile<kernel, stride, rows, columns>(
          g, tile, from + tile.image * g.from_height * g.from_width * g.channels + channel, taps,
          Two(), seen, [&](int row, int column, const Two& value) {
            store_two(image + (static_cast<int64_t>(row) * g.to_width + column) * g.channels,
                      value);
            Two difference = rounded<T>(value);
            difference.a -= center.a;
            difference.b -= center.b;
            sum.add(difference, {1, 1});
            squares.add(difference, difference);
          });
    }
  }
  store_block_sums(g.channels, channel, sum, squares, partial);
}

template <typename T, typename Activation>
struct SlopeOfNorm {
  const T* x;
  const float *mean, *inverse, *scale, *bias;
  Activation activation;
};

// A thread's part of it: dz from the gradient of the activation's result, and its sums.
template <typename T, typename Activation>
struct SlopeOfChannels {
  Two mean, inverse, scale, bias, sum, product;
  Activation activation;
  __device__ SlopeOfChannels(const SlopeOfNorm<T, Activation>& n, int64_t channel)
      : mean(load_two(n.mean + channel)),
        inverse(load_two(n.inverse + channel)),
        scale(load_two(n.scale + channel)),
        bias(load_two(n.bias + channel)),
        activation(n.activation) {}
  __device__ Two operator()(const Two& x, const Two& dy) {
    const Two normal{(x.a - mean.a) * inverse.a, (x.b - mean.b) * inverse.b};
    const Two dz{activation.slope(normal.a * scale.a + bias.a, dy.a),
                 activation.slope(normal.b * scale.b + bias.b, dy.b)};
    sum.add(dz, {1, 1});
    product.add(dz, normal);
    return dz;
  }
};

// dz from dy: for steps of 1 by the taps turned, for steps of 2 by spreading dy.
template <int kernel, int stride, int rows, int columns, typename T, typename Activation>
__global__ void __launch_bounds__(kDepthwiseThreads)
    convolve_slopes(Sides g, const T* from, const T* weight, SlopeOfNorm<T, Activation> norm, T* to,
                    float* partial) {
  float* taps = dynamic_shared<float>();
  const int own = 2 * static_cast<int>(blockDim.x);
  const int64_t first = static_cast<int64_t>(blockIdx.y) * own;
  load_taps<kernel * kernel>(weight, g.channels, first, stride == 1, taps);
  taps += 2 * threadIdx.x;
  const int64_t channel = first + 2 * threadIdx.x;
  Two sum, product;
  if (channel < g.channels) {
    SlopeOfChannels<T, Activation> slope(norm, channel);
    const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.y;
    int64_t number = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
#pragma unroll 1
    for (; number < g.tiles; number += step) {
      const Tile tile(g, number);
      const int64_t image = tile.image * g.to_height * g.to_width * g.channels + channel;
      const T* dy = from + tile.image * g.from_height * g.from_width * g.channels + channel;
      const auto store = [&](int row, int column, const Two& value) {
        const int64_t at = image + (static_cast<int64_t>(row) * g.to_width + column) * g.channels;
        store_two(to + at, slope(load_two(norm.x + at), value));
      };
      if constexpr (stride == 1) {
        convolve_tile<kernel, 1, rows, columns>(g, tile, dy, taps, Two(), PlainInput::Values(),
                                                store);
      } else {
        spread_tile<kernel, rows, columns>(g, tile, dy, taps, store);
      }
    }
    sum = slope.sum;
    product = slope.product;
  }
  store_block_sums(g.channels, channel, sum, product, partial);
}

__global__ void finish_depthwise_sums(const float* partial, int64_t channels, int64_t parts,
                                      float* first, float* second) {
  const int64_t channel = static_cast<int64_t>(blockIdx.x) * kWarp + threadIdx.x;
  const NormSums sums = add_parts(partial, channels, channel, parts);
  if (threadIdx.y != 0 || channel >= channels) return;
  first[channel] = sums.first;
  second[channel] = sums.second;
}

// Blocks in x: enough for several rounds on the largest GPUs, each with several tiles a thread.
int64_t sum_parts(const Convolution& c, const Sides& g) {
  constexpr int64_t kSumBlocks = 8448;
  return std::clamp<int64_t>(ceil_div(g.tiles, block_of(c).y), 1,
                             std::max<int64_t>(1, kSumBlocks / channel_blocks(c)));
}

// Of the data gradient.
Sides slope_sides(const Convolution& c) {
  const int64_t top = c.window.paddings[0], left = c.window.paddings[1];
  if (c.window.strides[0] == 1) {
    const int64_t last = c.window.kernel[0] - 1;
    return sides_of(c, c.out, c.in, last - top, last - left, kConvolveRows, kConvolveColumns,
                    c.in[0], c.in[1]);
  }
  return sides_of(c, c.out, c.in, top, left, kConvolveRows, kSpreadColumns, c.in[0] + top,
                  c.in[1] + left);
}

Sides forward_sides(const Convolution& c) {
  return sides_of(c, c.in, c.out, c.window.paddings[0], c.window.paddings[1], kConvolveRows,
                  kConvolveColumns, c.out[0], c.out[1]);
}

void finish(const Convolution& c, int64_t parts, const void* partial, float* first, float* second,
            cudaStream_t stream) {
  launch(finish_depthwise_sums, dim3(blocks_for(c.channels, kWarp)), dim3(kWarp, kFinishLanes), 0,
         stream, static_cast<const float*>(partial), c.channels, parts, first, second);
}

// Calls body(T(), window size).
template <typename Body>
void with_type_and_kernel(const Convolution& c, Body body) {
  dispatch(c.dtype, [&](auto type) {
    if (c.window.kernel[0] == 3) {
      body(type, Number<3>());
    } else {
      body(type, Number<5>());
    }
  });
}

}  // namespace

bool takes_depthwise_norm(const Convolution& c) {
  return takes_depthwise_tiles(c) && c.window.kernel[0] <= 5;
}

bool takes_depthwise_activation(NormActivation activation) {
  return activation != NormActivation::kSilu;
}

size_t depthwise_norm_workspace(const Convolution& c) {
  const int64_t parts = std::max(sum_parts(c, forward_sides(c)), sum_parts(c, slope_sides(c)));
  return std::max(static_cast<size_t>(parts * 2 * c.channels) * sizeof(float),
                  depthwise_tiles_weight_grad_workspace(c));
}

void depthwise_sums_forward(const Convolution& c, const void* x, const void* weight,
                            const DepthwiseInput& input, const float* pivot, void* y, float* sum,
                            float* squares, void* workspace, cudaStream_t stream) {
  const Sides g = forward_sides(c);
  const int64_t parts = sum_parts(c, g);
  with_type_and_kernel(c, [&](auto type, auto size) {
    using T = decltype(type);
    with_input(input, [&](auto seen) {
      using Input = decltype(seen);
      constexpr int kSize = decltype(size)::kValue;
      const auto kernel =
          c.window.strides[0] == 1
              ? convolve_and_sum<kSize, 1, kConvolveRows, kConvolveColumns, T, Input>
              : convolve_and_sum<kSize, 2, kConvolveRows, kConvolveColumns, T, Input>;
      const dim3 grid(static_cast<unsigned>(parts), static_cast<unsigned>(channel_blocks(c)));
      launch(kernel, grid, block_of(c), shared_of(c), stream, g, static_cast<const T*>(x),
             static_cast<const T*>(weight), seen, pivot, static_cast<T*>(y),
             static_cast<float*>(workspace));
    });
  });
  finish(c, parts, workspace, sum, squares, stream);
}

void depthwise_norm_weight_grad(const Convolution& c, const void* x, const void* dy,
                                const DepthwiseInput& input, void* dweight, void* workspace,
                                cudaStream_t stream) {
  with_type_and_kernel(c, [&](auto type, auto size) {
    with_input(input, [&](auto seen) {
      run_weight_gradient<decltype(size)::kValue, decltype(type)>(c, x, seen, dy, dweight, nullptr,
                                                                  workspace, stream);
    });
  });
}

void depthwise_norm_data_grad(const Convolution& c, const void* weight, const void* dy,
                              const DepthwiseNormGradient& n, void* workspace,
                              cudaStream_t stream) {
  const Sides g = slope_sides(c);
  const int64_t parts = sum_parts(c, g);
  with_type_and_kernel(c, [&](auto type, auto size) {
    using T = decltype(type);
    with_activation(n.activation, [&](auto activation) {
      using Activation = decltype(activation);
      constexpr int kSize = decltype(size)::kValue;
      const auto kernel =
          c.window.strides[0] == 1
              ? convolve_slopes<kSize, 1, kConvolveRows, kConvolveColumns, T, Activation>
              : convolve_slopes<kSize, 2, kConvolveRows, kSpreadColumns, T, Activation>;
      const SlopeOfNorm<T, Activation> norm{
          static_cast<const T*>(n.x), n.mean, n.inverse, n.scale, n.bias, activation};
      const dim3 grid(static_cast<unsigned>(parts), static_cast<unsigned>(channel_blocks(c)));
      launch(kernel, grid, block_of(c), shared_of(c), stream, g, static_cast<const T*>(dy),
             static_cast<const T*>(weight), norm, static_cast<T*>(n.dz),
             static_cast<float*>(workspace));
    });
  });
  finish(c, parts, workspace, n.dbias, n.dscale, stream);
}

}  // namespace fleet::cuda
