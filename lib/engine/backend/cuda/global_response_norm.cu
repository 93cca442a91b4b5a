#include <cmath>

#include "backend/cuda/types.h"
#include "exec/kernel.h"

namespace fleet {
namespace {

// A sample is `positions` rows of `channels` elements.
struct Samples {
  int64_t count, positions, channels;
  float epsilon;
  int64_t values() const { return count * channels; }
};

Samples samples_of(const Shape& x, const Attributes& attributes) {
  const int64_t channels = x[x.rank() - 1];
  return {.count = x[0],
          .positions = x.elements() / x[0] / channels,
          .channels = channels,
          .epsilon = static_cast<float>(attributes.number("epsilon"))};
}

constexpr int kSumRows = 8;  // of a block of kWarp columns

// Of each sample and channel: the norm of x; with dy the sums of dy x and of dy.
template <bool gradient, typename T>
__global__ void sum_positions(Samples s, const T* x, const T* dy, float* first, float* second) {
  __shared__ float shared[2][kSumRows][cuda::kWarp];
  const int64_t c = static_cast<int64_t>(blockIdx.x) * cuda::kWarp + threadIdx.x;
  const int64_t sample = blockIdx.y;
  float sums[2] = {0, 0};
  for (int64_t p = threadIdx.y; p < s.positions && c < s.channels; p += kSumRows) {
    const int64_t at = (sample * s.positions + p) * s.channels + c;
    const float value = cuda::to_float(x[at]), slope = gradient ? cuda::to_float(dy[at]) : value;
    sums[0] += value * slope;
    sums[1] += slope;
  }
  for (int i = 0; i < 2; ++i) shared[i][threadIdx.y][threadIdx.x] = sums[i];
  cuda::block_barrier();
  if (threadIdx.y != 0 || c >= s.channels) return;
  for (int row = 1; row < kSumRows; ++row) {
    for (int i = 0; i < 2; ++i) sums[i] += shared[i][row][threadIdx.x];
  }
  const int64_t to = sample * s.channels + c;
  first[to] = gradient ? sums[0] : sqrtf(sums[0]);
  if (gradient) second[to] = sums[1];
}

// The mean of a sample's norms, + epsilon. By a block.
__device__ float mean_norm(const Samples& s, const float* norms) {
  float sum = 0;
  for (int64_t c = threadIdx.x; c < s.channels; c += cuda::kBlock) sum += norms[c];
  return cuda::block_sum<cuda::kBlock>(sum) / static_cast<float>(s.channels) + s.epsilon;
}

// A block per sample.
__global__ void find_factors(Samples s, const float* norms, const float* scale, float* factor) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * s.channels;
  const float mean = mean_norm(s, norms + at);
  for (int64_t c = threadIdx.x; c < s.channels; c += cuda::kBlock) {
    factor[at + c] = 1 + scale[c] * norms[at + c] / mean;
  }
}

// The same, with the factors of x; products become the sample's shares of dscale.
__global__ void find_slopes(Samples s, const float* norms, const float* scale, float* products,
                            float* factor, float* slope) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * s.channels;
  const float mean = mean_norm(s, norms + at);
  float sum = 0;
  for (int64_t c = threadIdx.x; c < s.channels; c += cuda::kBlock) {
    sum += scale[c] * products[at + c] * norms[at + c];
  }
  const float shared =
      cuda::block_sum<cuda::kBlock>(sum) / (static_cast<float>(s.channels) * mean * mean);
  for (int64_t c = threadIdx.x; c < s.channels; c += cuda::kBlock) {
    const float norm = norms[at + c], product = products[at + c];
    factor[at + c] = 1 + scale[c] * norm / mean;
    slope[at + c] = norm > 0 ? (scale[c] * product / mean - shared) / norm : 0;
    products[at + c] = product * norm / mean;
  }
}

template <typename T>
__global__ void scale_channels(Samples s, int64_t count, const T* x, const float* factor,
                               const float* bias, T* y) {
  const int64_t at = cuda::thread_index();
  if (at >= count) return;
  const int64_t row = cuda::quotient(at, s.channels), c = at - row * s.channels;
  const int64_t sample = cuda::quotient(row, s.positions);
  y[at] = cuda::from_float<T>(cuda::to_float(x[at]) * factor[sample * s.channels + c] + bias[c]);
}

// dx may be dy.
template <typename T>
__global__ void combine_gradients(Samples s, int64_t count, const T* x, const T* dy,
                                  const float* factor, const float* slope, T* dx) {
  const int64_t at = cuda::thread_index();
  if (at >= count) return;
  const int64_t row = cuda::quotient(at, s.channels), c = at - row * s.channels;
  const int64_t of = cuda::quotient(row, s.positions) * s.channels + c;
  dx[at] =
      cuda::from_float<T>(cuda::to_float(dy[at]) * factor[of] + cuda::to_float(x[at]) * slope[of]);
}

__global__ void sum_samples(Samples s, const float* values, float* total) {
  const int64_t c = cuda::thread_index();
  if (c >= s.channels) return;
  float sum = 0;
  for (int64_t n = 0; n < s.count; ++n) sum += values[n * s.channels + c];
  total[c] = sum;
}

template <bool gradient, typename T>
void launch_sums(const Samples& s, const T* x, const T* dy, float* first, float* second,
                 cudaStream_t stream) {
  cuda::launch(sum_positions<gradient, T>,
               dim3(cuda::blocks_for(s.channels, cuda::kWarp), static_cast<unsigned>(s.count)),
               dim3(cuda::kWarp, kSumRows), 0, stream, s, x, dy, first, second);
}

void layouts_of(LayoutQuery& query, int64_t tables) {
  const Samples s = samples_of(query.input_var(0).shape, query.attributes());
  constexpr int64_t kMostSamples = 65535;  // blockIdx.y
  if (s.count > kMostSamples) {
    throw Error(ErrorCode::kUnsupported, "global_response_norm takes no batch above 65535");
  }
  query.workspace(static_cast<size_t>(s.values() * tables) * sizeof(float));
}

}  // namespace

// Workspace: factors, and norms unless they are an output.
FLEET_KERNEL(cuda, global_response_norm) {
  def.dtypes = cuda::floating_types();
  def.layouts = [](LayoutQuery& query) { layouts_of(query, 2); };
  def.create = [](KernelContext& context) {
    const Argument x = context.inputs[0], y = context.outputs[0];
    const Samples s = samples_of(x.shape, context.attributes());
    const float* scale = context.inputs[1].as<const float>();
    const float* bias = context.inputs[2].as<const float>();
    auto* factor = static_cast<float*>(context.workspace);
    float* saved = context.outputs[1].as<float>();
    float* norms = saved ? saved : factor + s.values();
    return cuda::dispatch(x.dtype, [&](auto type) {
      using T = decltype(type);
      return make_kernel([=](Stream& on) {
        cudaStream_t stream = cuda::stream_of(on);
        launch_sums<false>(s, x.as<const T>(), static_cast<const T*>(nullptr), norms,
                           static_cast<float*>(nullptr), stream);
        cuda::launch(find_factors, static_cast<unsigned>(s.count), cuda::kBlock, 0, stream, s,
                     norms, scale, factor);
        const int64_t count = x.shape.elements();
        cuda::launch(scale_channels<T>, cuda::blocks_for(count), cuda::kBlock, 0, stream, s, count,
                     x.as<const T>(), factor, bias, y.as<T>());
      });
    });
  };
}

// Workspace: products, sums, factors and slopes.
FLEET_KERNEL(cuda, global_response_norm_grad) {
  def.dtypes = cuda::floating_types();
  def.layouts = [](LayoutQuery& query) { layouts_of(query, 4); };
  def.create = [](KernelContext& context) {
    const Argument x = context.inputs[0], dy = context.inputs[3], dx = context.outputs[0];
    const Samples s = samples_of(x.shape, context.attributes());
    const float* scale = context.inputs[1].as<const float>();
    const float* norms = context.inputs[2].as<const float>();
    float *dscale = context.outputs[1].as<float>(), *dbias = context.outputs[2].as<float>();
    auto* products = static_cast<float*>(context.workspace);
    float *sums = products + s.values(), *factor = sums + s.values(), *slope = factor + s.values();
    return cuda::dispatch(x.dtype, [&](auto type) {
      using T = decltype(type);
      return make_kernel([=](Stream& on) {
        cudaStream_t stream = cuda::stream_of(on);
        launch_sums<true>(s, x.as<const T>(), dy.as<const T>(), products, sums, stream);
        cuda::launch(find_slopes, static_cast<unsigned>(s.count), cuda::kBlock, 0, stream, s, norms,
                     scale, products, factor, slope);
        const int64_t count = x.shape.elements();
        if (dx) {
          cuda::launch(combine_gradients<T>, cuda::blocks_for(count), cuda::kBlock, 0, stream, s,
                       count, x.as<const T>(), dy.as<const T>(), factor, slope, dx.as<T>());
        }
        const unsigned blocks = cuda::blocks_for(s.channels);
        if (dscale) {
          cuda::launch(sum_samples, blocks, cuda::kBlock, 0, stream, s, products, dscale);
        }
        if (dbias) cuda::launch(sum_samples, blocks, cuda::kBlock, 0, stream, s, sums, dbias);
      });
    });
  };
}

}  // namespace fleet
