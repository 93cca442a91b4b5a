#include "backend/cuda/norm.h"
#include "backend/cuda/norm_tiles.h"

namespace fleet::cuda {
namespace {

// Sums of the differences from the channel's first value, and of their squares: differences from a
// value near the mean lose no digits.
template <int pack, typename T>
__global__ void __launch_bounds__(kBlock, kResident)
    sum_moments(NormTiling t, const T* x, float* partial) {
  const NormPlace p = place_of<pack>(t);
  float first[pack] = {}, second[pack] = {};
  if (p.inside(t)) {
    const auto pivot = load_floats<pack>(x, p.channel);
#pragma unroll 4
    for (int64_t row = p.begin + p.lane; row < p.end; row += p.lanes) {
      const auto values = load_floats<pack>(x, row * t.channels + p.channel);
#pragma unroll
      for (int i = 0; i < pack; ++i) {
        const float difference = values.at[i] - pivot.at[i];
        first[i] += difference;
        second[i] += difference * difference;
      }
    }
  }
  store_part<pack>(t, p, first, second, partial);
}

struct Statistics {
  const float *mean, *variance;
  float *mean_out, *variance_out, *saved_mean, *saved_variance;
  float momentum;
};

template <typename T>
__global__ void finish_moments(const float* partial, const T* x, int64_t rows, int64_t channels,
                               int64_t parts, Statistics s) {
  const int64_t channel = static_cast<int64_t>(blockIdx.x) * kWarp + threadIdx.x;
  const NormSums sums = add_parts(partial, channels, channel, parts);
  if (threadIdx.y != 0 || channel >= channels) return;
  const float count = static_cast<float>(rows), shift = sums.first / count;
  const float mean = to_float(x[channel]) + shift;
  const float raw = sums.second / count - shift * shift;
  const float variance = raw < 0 ? 0 : raw;  // keeps NaN
  s.saved_mean[channel] = mean;
  s.saved_variance[channel] = variance;
  const bool moves = has_statistics(mean, variance);
  if (s.mean_out) {
    s.mean_out[channel] =
        moves ? (1 - s.momentum) * s.mean[channel] + s.momentum * mean : s.mean[channel];
  }
  if (s.variance_out && moves) {
    s.variance_out[channel] =
        (1 - s.momentum) * s.variance[channel] + s.momentum * (count / (count - 1)) * variance;
  } else if (s.variance_out) {
    s.variance_out[channel] = s.variance[channel];
  }
}

struct Transform {
  const float *scale, *bias, *mean, *variance;
  float epsilon;
};

__device__ inline float deviation_inverse(float variance, float epsilon) {
  return 1 / sqrtf(variance + epsilon);
}

// Whether the mean is part of the constant, which saves registers. A value of 16 bits lies within
// 2^11 deviations of 0 or its own rounding is larger than a deviation, so that the float32 product
// loses less than the result's rounding. A float32 value keeps the difference from the mean.
template <typename T>
inline constexpr bool kFoldsMean = sizeof(T) == 2;

// mask: one byte per pack, one bit per element.
template <int pack, bool relu, typename T>
__global__ void __launch_bounds__(kBlock, kResident)
    transform(NormTiling t, const T* x, const T* z, T* y, uint8_t* mask, Transform f) {
  const NormPlace p = place_of<pack>(t);
  if (!p.inside(t)) return;
  float mean[pack], factor[pack], bias[pack];
#pragma unroll
  for (int i = 0; i < pack; ++i) {
    const int64_t c = p.channel + i;
    mean[i] = f.mean[c];
    factor[i] = f.scale[c] * deviation_inverse(f.variance[c], f.epsilon);
    bias[i] = kFoldsMean<T> ? f.bias[c] - mean[i] * factor[i] : f.bias[c];
  }
  struct Row {
    Pack<T, pack> x, z;
  };
  const auto load = [&](int64_t at) {
    Row loaded;
    loaded.x = load_pack<pack>(x, at);
    if (z) loaded.z = load_pack<pack>(z, at);
    return loaded;
  };
  for_rows_ahead<2>(t, p, load, [&](int64_t at, const Row& loaded) {
    Pack<float, pack> values;
#pragma unroll
    for (int i = 0; i < pack; ++i) {
      const float from = kFoldsMean<T> ? 0 : mean[i];
      values.at[i] = (to_float(loaded.x.at[i]) - from) * factor[i] + bias[i];
    }
    if (z) {
#pragma unroll
      for (int i = 0; i < pack; ++i) values.at[i] += to_float(loaded.z.at[i]);
    }
    if (relu) {
      unsigned bits = 0;
#pragma unroll
      for (int i = 0; i < pack; ++i) {
        const bool stopped = values.at[i] <= 0;  // false for NaN, which passes as in PyTorch
        bits |= (stopped ? 0u : 1u) << i;
        values.at[i] = stopped ? 0 : values.at[i];
      }
      if (mask) mask[at / pack] = static_cast<uint8_t>(bits);
    }
    store_floats<pack>(y, at, values);
  });
}

template <typename T>
struct Gradients {
  const T* dy[kMaxNormGradients];
  int count;
  const uint8_t* mask;
};

// A row's loads that kernels do ahead of their use.
template <int pack, typename T>
struct GradientRow {
  Pack<T, pack> x, dy;
  unsigned bits;
};

template <int pack, typename T>
__device__ inline GradientRow<pack, T> load_row(const T* x, const Gradients<T>& g, int64_t at) {
  return {load_pack<pack>(x, at), load_pack<pack>(g.dy[0], at), g.mask ? g.mask[at / pack] : ~0u};
}

// The gradient before the relu, for the elements from `at` on.
template <int pack, typename T>
__device__ inline Pack<float, pack> gradient_of(const GradientRow<pack, T>& row,
                                                const Gradients<T>& g, int64_t at) {
  Pack<float, pack> sum;
#pragma unroll
  for (int i = 0; i < pack; ++i) sum.at[i] = to_float(row.dy.at[i]);
#pragma unroll
  for (int k = 1; k < kMaxNormGradients; ++k) {
    if (k >= g.count) break;
    const auto more = load_floats<pack>(g.dy[k], at);
#pragma unroll
    for (int i = 0; i < pack; ++i) sum.at[i] += more.at[i];
  }
#pragma unroll
  for (int i = 0; i < pack; ++i) sum.at[i] = row.bits >> i & 1u ? sum.at[i] : 0;
  return sum;
}

// Sums of the gradient, and of the gradient times x - mean; dz receives the gradient itself.
template <int pack, typename T>
__global__ void __launch_bounds__(kBlock, kResident)
    sum_gradients(NormTiling t, const T* x, Gradients<T> g, T* dz, const float* mean_of_x,
                  float* partial) {
  const NormPlace p = place_of<pack>(t);
  float first[pack] = {}, second[pack] = {};
  if (p.inside(t)) {
    float mean[pack];
#pragma unroll
    for (int i = 0; i < pack; ++i) mean[i] = mean_of_x[p.channel + i];
    const auto load = [&](int64_t at) { return load_row<pack>(x, g, at); };
    for_rows_ahead<2>(t, p, load, [&](int64_t at, const GradientRow<pack, T>& loaded) {
      const auto gradient = gradient_of(loaded, g, at);
#pragma unroll
      for (int i = 0; i < pack; ++i) {
        first[i] += gradient.at[i];
        second[i] += gradient.at[i] * (to_float(loaded.x.at[i]) - mean[i]);
      }
      if (dz) store_floats<pack>(dz, at, gradient);
    });
  }
  store_part<pack>(t, p, first, second, partial);
}

struct ParameterGradients {
  float *dscale, *dbias;
  float *product, *sum;  // copies of the same sums, or null
};

__global__ void finish_gradients(const float* partial, int64_t channels, int64_t parts,
                                 ParameterGradients g, Transform f) {
  const int64_t channel = static_cast<int64_t>(blockIdx.x) * kWarp + threadIdx.x;
  const NormSums sums = add_parts(partial, channels, channel, parts);
  if (threadIdx.y != 0 || channel >= channels) return;
  const float product = sums.second * deviation_inverse(f.variance[channel], f.epsilon);
  g.dbias[channel] = sums.first;
  g.dscale[channel] = product;
  if (g.sum) g.sum[channel] = sums.first;
  if (g.product) g.product[channel] = product;
}

// dx = scale / deviation (gradient - its mean - normalized x times their mean product). The means
// are zero if the statistics are constants.
template <int pack, typename T>
__global__ void __launch_bounds__(kBlock, kResident)
    data_gradient(NormTiling t, const T* x, Gradients<T> g, T* dx, Transform f, const float* dscale,
                  const float* dbias, float share) {
  const NormPlace p = place_of<pack>(t);
  if (!p.inside(t)) return;
  float mean[pack], factor[pack], from_x[pack], constant[pack];
#pragma unroll
  for (int i = 0; i < pack; ++i) {
    const int64_t c = p.channel + i;
    const float inverse = deviation_inverse(f.variance[c], f.epsilon);
    mean[i] = kFoldsMean<T> ? 0 : f.mean[c];
    factor[i] = f.scale[c] * inverse;
    from_x[i] = inverse * dscale[c] * share;
    constant[i] = dbias[c] * share;
    if (kFoldsMean<T>) constant[i] -= f.mean[c] * from_x[i];
  }
  const auto load = [&](int64_t at) { return load_row<pack>(x, g, at); };
  for_rows_ahead<2>(t, p, load, [&](int64_t at, const GradientRow<pack, T>& loaded) {
    auto gradient = gradient_of(loaded, g, at);
#pragma unroll
    for (int i = 0; i < pack; ++i) {
      const float normal = (to_float(loaded.x.at[i]) - mean[i]) * from_x[i];
      gradient.at[i] = factor[i] * (gradient.at[i] - constant[i] - normal);
    }
    store_floats<pack>(dx, at, gradient);
  });
}

void copy(float* to, const float* from, int64_t channels, cudaStream_t stream) {
  if (!to || to == from) return;
  check(cudaMemcpyAsync(to, from, channels * sizeof(float), cudaMemcpyDeviceToDevice, stream),
        "copying statistics");
}

}  // namespace

// The sums of the parts, and space for two unused results per channel.
size_t norm_workspace(const NormShape& shape) {
  const int64_t parts =
      std::max(norm_launch(shape).parts, norm_launch(shape, small_norm_pack(shape)).parts);
  return static_cast<size_t>(parts + 1) * 2 * shape.channels * sizeof(float);
}

int64_t norm_mask_bytes(const NormShape& shape) {
  return shape.rows * shape.channels / norm_pack(shape);
}

void norm_forward(const NormForward& n, cudaStream_t stream) {
  const auto [tiling, grid, parts] = norm_launch(n.shape);
  const int64_t channels = n.shape.channels;
  float* partial = static_cast<float*>(n.workspace);
  float* spare = partial ? partial + parts * 2 * channels : nullptr;
  Statistics s{.mean = n.mean,
               .variance = n.variance,
               .mean_out = n.mean_out,
               .variance_out = n.variance_out,
               .saved_mean = n.saved_mean ? n.saved_mean : spare,
               .saved_variance = n.saved_variance ? n.saved_variance : spare + channels,
               .momentum = static_cast<float>(n.momentum)};
  if (n.is_test) {
    copy(n.mean_out, n.mean, channels, stream);
    copy(n.variance_out, n.variance, channels, stream);
    copy(n.saved_mean, n.mean, channels, stream);
    copy(n.saved_variance, n.variance, channels, stream);
  }
  dispatch_norm(n.shape, [&, tiling = tiling, grid = grid, parts = parts](auto type, auto pack) {
    using T = decltype(type);
    constexpr int kSize = decltype(pack)::value;
    const T *x = static_cast<const T*>(n.x), *z = static_cast<const T*>(n.z);
    T* y = static_cast<T*>(n.y);
    if (!n.is_test) {
      launch(sum_moments<kSize, T>, grid, kBlock, 0, stream, tiling, x, partial);
      launch(finish_moments<T>, finish_grid(n.shape), dim3(kWarp, kFinishLanes), 0, stream, partial,
             x, n.shape.rows, channels, parts, s);
    }
    const Transform f{.scale = n.scale,
                      .bias = n.bias,
                      .mean = n.is_test ? n.mean : s.saved_mean,
                      .variance = n.is_test ? n.variance : s.saved_variance,
                      .epsilon = static_cast<float>(n.epsilon)};
    if (is_recomputed(n.activation)) {
      return norm_activation_transform(n, f.mean, f.variance, stream);
    }
    const bool relu = n.activation == NormActivation::kRelu;
    launch(relu ? transform<kSize, true, T> : transform<kSize, false, T>, grid, kBlock, 0, stream,
           tiling, x, z, y, n.mask, f);
  });
}

namespace {

Transform transform_of(const NormBackward& n) {
  return {.scale = n.scale,
          .bias = nullptr,
          .mean = n.mean,
          .variance = n.variance,
          .epsilon = static_cast<float>(n.epsilon)};
}

template <int pack, typename T>
void run_data_gradient(const NormBackward& n, const Gradients<T>& g, const float* dscale,
                       const float* dbias, cudaStream_t stream) {
  const NormLaunch l = norm_launch(n.shape);
  const float rows = static_cast<float>(n.count > 0 ? n.count : n.shape.rows);
  const float share = n.is_test ? 0 : 1 / rows;
  launch(data_gradient<pack, T>, l.grid, kBlock, 0, stream, l.tiling, static_cast<const T*>(n.x), g,
         static_cast<T*>(n.dx), transform_of(n), dscale, dbias, share);
}

}  // namespace

void norm_backward(const NormBackward& n, cudaStream_t stream) {
  const NormLaunch l = norm_launch(n.shape);
  const int64_t channels = n.shape.channels;
  float* partial = static_cast<float*>(n.workspace);
  float* spare = partial + l.parts * 2 * channels;
  float* dscale = n.dscale ? n.dscale : spare;
  float* dbias = n.dbias ? n.dbias : spare + channels;
  dispatch_norm(n.shape, [&](auto type, auto pack) {
    using T = decltype(type);
    constexpr int kSize = decltype(pack)::value;
    T* dz = static_cast<T*>(n.dz);
    Gradients<T> g{{}, n.gradients, n.mask};
    for (int i = 0; i < n.gradients; ++i) g.dy[i] = static_cast<const T*>(n.dy[i]);
    launch(sum_gradients<kSize, T>, l.grid, kBlock, 0, stream, l.tiling, static_cast<const T*>(n.x),
           g, dz, n.mean, partial);
    launch(finish_gradients, finish_grid(n.shape), dim3(kWarp, kFinishLanes), 0, stream, partial,
           channels, l.parts, ParameterGradients{dscale, dbias, n.product, n.sum}, transform_of(n));
    if (!n.dx) return;
    // dz now holds the gradient, and may share the memory of a dy.
    if (dz) g = {{dz}, 1, nullptr};
    run_data_gradient<kSize>(n, g, dscale, dbias, stream);
  });
}

void norm_data_gradient(const NormBackward& n, cudaStream_t stream) {
  dispatch_norm(n.shape, [&](auto type, auto pack) {
    using T = decltype(type);
    const Gradients<T> g{{static_cast<const T*>(n.dz)}, 1, n.mask};
    run_data_gradient<decltype(pack)::value>(n, g, n.dscale, n.dbias, stream);
  });
}

}  // namespace fleet::cuda
