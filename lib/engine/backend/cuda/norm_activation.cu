// A batch normalization with an activation whose input is computed again for the gradient.
#include "backend/cuda/norm_activation.h"
#include "backend/cuda/norm_tiles.h"

namespace fleet::cuda {
namespace {

// Of a gradient. In float32 a row takes twice the registers.
template <typename T>
constexpr int kRowsAhead = sizeof(T) == 4 ? 1 : 2;

struct RecomputedNorm {
  const float *scale, *bias, *mean, *variance;
  float epsilon;
  __device__ float inverse(int64_t c) const { return 1 / sqrtf(variance[c] + epsilon); }
};

template <typename T>
struct RecomputedGradients {
  const T* dy[kMaxNormGradients];
  int count;
};

template <int pack, typename T>
struct RecomputedRow {
  Pack<T, pack> x, dy;
};

// What one pack of channels needs to compute the activation's input u = (x - mean) factor + bias.
template <int pack>
struct RecomputedChannels {
  float mean[pack], factor[pack], bias[pack];
  __device__ RecomputedChannels(const RecomputedNorm& n, int64_t channel) {
#pragma unroll
    for (int i = 0; i < pack; ++i) {
      mean[i] = n.mean[channel + i];
      factor[i] = n.scale[channel + i] * n.inverse(channel + i);
      bias[i] = n.bias[channel + i];
    }
  }
};

template <NormActivation activation, int pack, typename T>
__global__ void __launch_bounds__(kBlock, kResident)
    activate(NormTiling t, const T* x, T* y, RecomputedNorm n) {
  const NormPlace p = place_of<pack>(t);
  if (!p.inside(t)) return;
  const RecomputedChannels<pack> c(n, p.channel);
  const auto load = [&](int64_t at) { return load_pack<pack>(x, at); };
  for_rows_ahead<4>(t, p, load, [&](int64_t at, const Pack<T, pack>& loaded) {
    Pack<float, pack> values;
#pragma unroll
    for (int i = 0; i < pack; ++i) {
      const float u = (to_float(loaded.at[i]) - c.mean[i]) * c.factor[i] + c.bias[i];
      values.at[i] = NormFormula<activation>::of(u);
    }
    store_floats<pack>(y, at, values);
  });
}

template <int pack, typename T>
__device__ inline RecomputedRow<pack, T> load_recomputed(const T* x,
                                                         const RecomputedGradients<T>& g,
                                                         int64_t at) {
  return {load_pack<pack>(x, at), load_pack<pack>(g.dy[0], at)};
}

// Calls use(i, x - mean, gradient of u) for the elements from `at` on.
template <NormActivation activation, int pack, typename T, typename Use>
__device__ inline void for_recomputed(const RecomputedRow<pack, T>& row,
                                      const RecomputedGradients<T>& g, int64_t at,
                                      const RecomputedChannels<pack>& c, const Use& use) {
  float dy[pack];
#pragma unroll
  for (int i = 0; i < pack; ++i) dy[i] = to_float(row.dy.at[i]);
#pragma unroll
  for (int k = 1; k < kMaxNormGradients; ++k) {
    if (k >= g.count) break;
    const auto more = load_floats<pack>(g.dy[k], at);
#pragma unroll
    for (int i = 0; i < pack; ++i) dy[i] += more.at[i];
  }
#pragma unroll
  for (int i = 0; i < pack; ++i) {
    const float distance = to_float(row.x.at[i]) - c.mean[i];
    const float u = distance * c.factor[i] + c.bias[i];
    use(i, distance, NormFormula<activation>::slope(u, dy[i]));
  }
}

template <NormActivation activation, int pack, typename T>
__global__ void __launch_bounds__(kBlock, kResident)
    sum_recomputed(NormTiling t, const T* x, RecomputedGradients<T> g, RecomputedNorm n,
                   float* partial) {
  const NormPlace p = place_of<pack>(t);
  float first[pack] = {}, second[pack] = {};
  if (p.inside(t)) {
    const RecomputedChannels<pack> channels(n, p.channel);
    const auto load = [&](int64_t at) { return load_recomputed<pack>(x, g, at); };
    for_rows_ahead<kRowsAhead<T>>(
        t, p, load, [&](int64_t at, const RecomputedRow<pack, T>& loaded) {
          for_recomputed<activation>(loaded, g, at, channels,
                                     [&](int i, float distance, float gradient) {
                                       first[i] += gradient;
                                       second[i] += gradient * distance;
                                     });
        });
#pragma unroll
    for (int i = 0; i < pack; ++i) second[i] *= n.inverse(p.channel + i);
  }
  store_part<pack>(t, p, first, second, partial);
}

__global__ void finish_recomputed(const float* partial, int64_t channels, int64_t parts,
                                  float* dscale, float* dbias) {
  const int64_t channel = static_cast<int64_t>(blockIdx.x) * kWarp + threadIdx.x;
  const NormSums sums = add_parts(partial, channels, channel, parts);
  if (threadIdx.y != 0 || channel >= channels) return;
  dbias[channel] = sums.first;
  dscale[channel] = sums.second;
}

template <NormActivation activation, int pack, typename T>
__global__ void __launch_bounds__(kBlock, sizeof(T) == 4 ? kResident - 1 : kResident)
    recomputed_data_gradient(NormTiling t, const T* x, RecomputedGradients<T> g, T* dx,
                             RecomputedNorm n, const float* dscale, const float* dbias,
                             float share) {
  const NormPlace p = place_of<pack>(t);
  if (!p.inside(t)) return;
  const RecomputedChannels<pack> channels(n, p.channel);
  float from_x[pack], constant[pack];
#pragma unroll
  for (int i = 0; i < pack; ++i) {
    from_x[i] = n.inverse(p.channel + i) * dscale[p.channel + i] * share;
    constant[i] = dbias[p.channel + i] * share;
  }
  const auto load = [&](int64_t at) { return load_recomputed<pack>(x, g, at); };
  for_rows_ahead<kRowsAhead<T>>(t, p, load, [&](int64_t at, const RecomputedRow<pack, T>& loaded) {
    Pack<float, pack> result;
    for_recomputed<activation>(loaded, g, at, channels, [&](int i, float distance, float gradient) {
      result.at[i] = channels.factor[i] * (gradient - constant[i] - distance * from_x[i]);
    });
    store_floats<pack>(dx, at, result);
  });
}

}  // namespace

NormActivation norm_activation(const std::string& name) {
  if (name.empty()) return NormActivation::kNone;
  if (name == "relu") return NormActivation::kRelu;
  if (name == "relu6") return NormActivation::kRelu6;
  if (name == "silu") return NormActivation::kSilu;
  if (name == "hardswish") return NormActivation::kHardSwish;
  throw Error(ErrorCode::kUnsupported, "no kernel of a batch normalization computes " + name);
}

void norm_activation_transform(const NormForward& n, const float* mean, const float* variance,
                               cudaStream_t stream) {
  const NormLaunch l = norm_launch(n.shape, small_norm_pack(n.shape));
  const RecomputedNorm norm{n.scale, n.bias, mean, variance, static_cast<float>(n.epsilon)};
  dispatch_recomputed(n.activation, [&](auto activation) {
    dispatch_small_norm(n.shape, [&](auto type, auto size) {
      using T = decltype(type);
      launch(activate<activation.kValue, decltype(size)::value, T>, l.grid, kBlock, 0, stream,
             l.tiling, static_cast<const T*>(n.x), static_cast<T*>(n.y), norm);
    });
  });
}

void norm_activation_backward(const NormBackward& n, cudaStream_t stream) {
  const NormLaunch l = norm_launch(n.shape, small_norm_pack(n.shape));
  const int64_t channels = n.shape.channels;
  float* partial = static_cast<float*>(n.workspace);
  float* spare = partial + l.parts * 2 * channels;
  float* dscale = n.dscale ? n.dscale : spare;
  float* dbias = n.dbias ? n.dbias : spare + channels;
  const RecomputedNorm norm{n.scale, n.bias, n.mean, n.variance, static_cast<float>(n.epsilon)};
  const float share = n.is_test ? 0 : 1 / static_cast<float>(n.shape.rows);
  dispatch_recomputed(n.activation, [&](auto activation) {
    constexpr NormActivation kActivation = activation.kValue;
    dispatch_small_norm(n.shape, [&](auto type, auto size) {
      using T = decltype(type);
      constexpr int kSize = decltype(size)::value;
      const T* x = static_cast<const T*>(n.x);
      RecomputedGradients<T> g{{}, n.gradients};
      for (int i = 0; i < n.gradients; ++i) g.dy[i] = static_cast<const T*>(n.dy[i]);
      launch(sum_recomputed<kActivation, kSize, T>, l.grid, kBlock, 0, stream, l.tiling, x, g, norm,
             partial);
      launch(finish_recomputed, finish_grid(n.shape), dim3(kWarp, kFinishLanes), 0, stream, partial,
             channels, l.parts, dscale, dbias);
      if (!n.dx) return;
      launch(recomputed_data_gradient<kActivation, kSize, T>, l.grid, kBlock, 0, stream, l.tiling,
             x, g, static_cast<T*>(n.dx), norm, dscale, dbias, share);
    });
  });
}

}  // namespace fleet::cuda
