#include "backend/cuda/norm.h"
#include "backend/cuda/norm_tiles.h"

namespace fleet::cuda {
namespace {

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

__global__ void finish_sums(const float* partial, int64_t channels, int64_t parts, float* first,
                            float* second) {
  const int64_t channel = static_cast<int64_t>(blockIdx.x) * kWarp + threadIdx.x;
  const NormSums sums = add_parts(partial, channels, channel, parts);
  if (threadIdx.y != 0 || channel >= channels) return;
  first[channel] = sums.first;
  second[channel] = sums.second;
}

__global__ void finish_norm(NormFinish f, float epsilon, float momentum) {
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
  if (f.factor) f.factor[c] = f.scale[c] * inverse;
  if (f.constant) f.constant[c] = f.bias[c] - mean * f.scale[c] * inverse;
}

}  // namespace

void sum_squares(const NormShape& shape, const void* x, const float* pivot, float* sum,
                 float* squares, void* workspace, cudaStream_t stream) {
  const NormLaunch l = norm_launch(shape);
  float* partial = static_cast<float*>(workspace);
  dispatch_norm(shape, [&](auto type, auto pack) {
    using T = decltype(type);
    launch(sum_powers<decltype(pack)::value, T>, l.grid, kBlock, 0, stream, l.tiling,
           static_cast<const T*>(x), pivot, partial);
  });
  finish_norm_sums(shape, partial, l.parts, sum, squares, stream);
}

void finish_norm_sums(const NormShape& shape, const float* partial, int64_t parts, float* sum,
                      float* squares, cudaStream_t stream) {
  launch(finish_sums, finish_grid(shape), dim3(kWarp, kFinishLanes), 0, stream, partial,
         shape.channels, parts, sum, squares);
}

void norm_finish(const NormFinish& finish, cudaStream_t stream) {
  launch(finish_norm, blocks_for(finish.channels), kBlock, 0, stream, finish,
         static_cast<float>(finish.epsilon), static_cast<float>(finish.momentum));
}

}  // namespace fleet::cuda
