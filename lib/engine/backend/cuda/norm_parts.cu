#include "backend/cuda/norm.h"
#include "backend/cuda/norm_tiles.h"

namespace fleet::cuda {
namespace {

template <int pack, typename T>
__global__ void __launch_bounds__(kBlock, kResident)
    transform(NormTiling t, const T* x, const T* factor, const T* constant, T* y) {
  const NormPlace p = place_of<pack>(t);
  if (!p.inside(t)) return;
  const auto factors = load_floats<pack>(factor, p.channel);
  const auto constants = load_floats<pack>(constant, p.channel);
  const auto load = [&](int64_t row) { return load_pack<pack>(x, row * t.channels + p.channel); };
  for_rows_ahead<4>(p, load, [&](int64_t row, const Pack<T, pack>& loaded) {
    Pack<float, pack> values;
#pragma unroll
    for (int i = 0; i < pack; ++i) {
      const float value = to_float(loaded.at[i]) * factors.at[i] + constants.at[i];
      values.at[i] = value <= 0 ? 0 : value;
    }
    store_floats<pack>(y, row * t.channels + p.channel, values);
  });
}

template <int pack, typename T>
__global__ void __launch_bounds__(kBlock, kResident)
    sum_powers(NormTiling t, const T* x, const float* pivot, float* partial) {
  const NormPlace p = place_of<pack>(t);
  float first[pack] = {}, second[pack] = {};
  if (p.inside(t)) {
    float from[pack] = {};
#pragma unroll
    for (int i = 0; i < pack; ++i) from[i] = pivot ? pivot[p.channel + i] : 0;
#pragma unroll 4
    for (int64_t row = p.begin + p.lane; row < p.end; row += p.lanes) {
      const auto values = load_floats<pack>(x, row * t.channels + p.channel);
#pragma unroll
      for (int i = 0; i < pack; ++i) {
        const float difference = values.at[i] - from[i];
        first[i] += difference;
        second[i] += difference * difference;
      }
    }
  }
  store_part<pack>(t, p, first, second, partial);
}

struct Backward {
  const float *mean, *inverse, *scale, *bias;
};

template <int pack, typename T>
__global__ void __launch_bounds__(kBlock, kResident)
    stop_gradients(NormTiling t, const T* x, T* dz, Backward b, float* partial) {
  const NormPlace p = place_of<pack>(t);
  float first[pack] = {}, second[pack] = {};
  if (p.inside(t)) {
    struct Row {
      Pack<T, pack> x, dz;
    };
    const auto load = [&](int64_t row) {
      const int64_t at = row * t.channels + p.channel;
      return Row{load_pack<pack>(x, at), load_pack<pack>(dz, at)};
    };
    for_rows_ahead<2>(p, load, [&](int64_t row, const Row& loaded) {
      Pack<float, pack> gradient;
#pragma unroll
      for (int i = 0; i < pack; ++i) {
        const int64_t c = p.channel + i;
        const float normal = (to_float(loaded.x.at[i]) - b.mean[c]) * b.inverse[c];
        const bool stopped = normal * b.scale[c] + b.bias[c] <= 0;
        gradient.at[i] = stopped ? 0 : to_float(loaded.dz.at[i]);
        first[i] += gradient.at[i];
        second[i] += gradient.at[i] * normal;
      }
      store_floats<pack>(dz, row * t.channels + p.channel, gradient);
    });
  }
  store_part<pack>(t, p, first, second, partial);
}

__global__ void finish_sums(const float* partial, int64_t channels, int64_t parts, float* first,
                            float* second) {
  const int64_t channel = static_cast<int64_t>(blockIdx.x) * kWarp + threadIdx.x;
  const NormSums sums = add_parts(partial, channels, channel, parts);
  if (threadIdx.y != 0 || channel >= channels) return;
  first[channel] = sums.first;
  second[channel] = sums.second;
}

template <typename T>
__global__ void finish_norm(NormFinish f, float epsilon, float momentum, T* factor, T* constant) {
  const int64_t c = thread_index();
  if (c >= f.channels) return;
  const float count = static_cast<float>(f.count);
  const float difference = f.sum[c] / count;
  const float mean = f.shifted ? f.mean[c] + difference : difference;
  const float raw = f.squares[c] / count - difference * difference;
  const float variance = raw < 0 ? 0 : raw, inverse = 1 / sqrtf(variance + epsilon);
  f.saved_mean[c] = mean;
  f.saved_variance[c] = variance;
  if (f.inverse) f.inverse[c] = inverse;
  const bool moves = has_statistics(mean, variance);
  if (f.mean_out) f.mean_out[c] = moves ? (1 - momentum) * f.mean[c] + momentum * mean : f.mean[c];
  if (f.variance_out && moves) {
    f.variance_out[c] =
        (1 - momentum) * f.variance[c] + momentum * (count / (count - 1)) * variance;
  } else if (f.variance_out) {
    f.variance_out[c] = f.variance[c];
  }
  if (factor) factor[c] = from_float<T>(f.scale[c] * inverse);
  if (constant) constant[c] = from_float<T>(f.bias[c] - mean * f.scale[c] * inverse);
}

}  // namespace

void scale_bias_relu(const NormShape& shape, const void* x, const void* factor,
                     const void* constant, void* y, cudaStream_t stream) {
  const NormLaunch l = norm_launch(shape);
  dispatch_norm(shape, [&](auto type, auto pack) {
    using T = decltype(type);
    launch(transform<decltype(pack)::value, T>, l.grid, kBlock, 0, stream, l.tiling,
           static_cast<const T*>(x), static_cast<const T*>(factor), static_cast<const T*>(constant),
           static_cast<T*>(y));
  });
}

void sum_squares(const NormShape& shape, const void* x, const float* pivot, float* sum,
                 float* squares, void* workspace, cudaStream_t stream) {
  const NormLaunch l = norm_launch(shape);
  float* partial = static_cast<float*>(workspace);
  dispatch_norm(shape, [&](auto type, auto pack) {
    using T = decltype(type);
    launch(sum_powers<decltype(pack)::value, T>, l.grid, kBlock, 0, stream, l.tiling,
           static_cast<const T*>(x), pivot, partial);
  });
  launch(finish_sums, finish_grid(shape), dim3(kWarp, kFinishLanes), 0, stream, partial,
         shape.channels, l.parts, sum, squares);
}

void norm_finish(const NormFinish& finish, cudaStream_t stream) {
  dispatch(finish.low, [&](auto type) {
    using T = decltype(type);
    launch(finish_norm<T>, blocks_for(finish.channels), kBlock, 0, stream, finish,
           static_cast<float>(finish.epsilon), static_cast<float>(finish.momentum),
           static_cast<T*>(finish.factor), static_cast<T*>(finish.constant));
  });
}

void relu_norm_gradient(const ReluNormGradient& g, cudaStream_t stream) {
  const NormLaunch l = norm_launch(g.shape);
  float* partial = static_cast<float*>(g.workspace);
  dispatch_norm(g.shape, [&](auto type, auto pack) {
    using T = decltype(type);
    launch(stop_gradients<decltype(pack)::value, T>, l.grid, kBlock, 0, stream, l.tiling,
           static_cast<const T*>(g.x), static_cast<T*>(g.dz),
           Backward{g.mean, g.inverse, g.scale, g.bias}, partial);
  });
  launch(finish_sums, finish_grid(g.shape), dim3(kWarp, kFinishLanes), 0, stream, partial,
         g.shape.channels, l.parts, g.dbias, g.dscale);
}

}  // namespace fleet::cuda
