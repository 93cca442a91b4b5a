#include <algorithm>

#include "backend/cuda/norm.h"
#include "backend/cuda/types.h"

namespace fleet::cuda {
namespace {

// A block of kBlock threads takes `columns` neighbouring packs of channels; its threads share the
// rows of its part between them, kBlock / columns at a time. A part's sums are added by thread and
// the parts' by part, in order.
struct Tiling {
  int64_t rows, channels, rows_a_part;
  int columns;
};

constexpr int64_t kMostParts = 512;  // enough blocks for the largest GPUs
constexpr int64_t kRowsAThread = 4;  // at least, if there is more than one part
constexpr int kMostColumns = 32;
constexpr int kFinishLanes = 32;

struct Place {
  int64_t channel;  // the first of the thread's pack
  int64_t begin, end;
  int lane, lanes;
  __device__ bool inside(const Tiling& t) const { return channel < t.channels; }
};

template <int pack>
__device__ inline Place place_of(const Tiling& t) {
  Place p;
  const int column = static_cast<int>(threadIdx.x) % t.columns;
  p.lane = static_cast<int>(threadIdx.x) / t.columns;
  p.lanes = kBlock / t.columns;
  p.channel = (static_cast<int64_t>(blockIdx.x) * t.columns + column) * pack;
  p.begin = static_cast<int64_t>(blockIdx.y) * t.rows_a_part;
  p.end = p.begin + t.rows_a_part < t.rows ? p.begin + t.rows_a_part : t.rows;
  return p;
}

// Adds two sums of each channel over the block's threads; partial[part][2][channels].
template <int pack>
__device__ inline void store_part(const Tiling& t, const Place& p, const float (&first)[pack],
                                  const float (&second)[pack], float* partial) {
  __shared__ float sums[2][kBlock * pack];
#pragma unroll
  for (int i = 0; i < pack; ++i) {
    sums[0][threadIdx.x * pack + i] = first[i];
    sums[1][threadIdx.x * pack + i] = second[i];
  }
  block_barrier();
  const int width = t.columns * pack;
  const int64_t base = static_cast<int64_t>(blockIdx.x) * width;
  for (int i = static_cast<int>(threadIdx.x); i < 2 * width; i += kBlock) {
    const int which = i / width, column = i % width;
    if (base + column >= t.channels) continue;
    float sum = 0;
    for (int lane = 0; lane < p.lanes; ++lane) sum += sums[which][lane * width + column];
    partial[(static_cast<int64_t>(blockIdx.y) * 2 + which) * t.channels + base + column] = sum;
  }
}

// A channel's two sums over all parts; valid in the threads with threadIdx.y = 0.
struct Sums {
  float first = 0, second = 0;
};
__device__ inline Sums add_parts(const float* partial, int64_t channels, int64_t channel,
                                 int64_t parts) {
  __shared__ float lanes[2][kFinishLanes][kWarp];
  Sums sums;
  if (channel < channels) {
    for (int64_t part = threadIdx.y; part < parts; part += kFinishLanes) {
      sums.first += partial[part * 2 * channels + channel];
      sums.second += partial[(part * 2 + 1) * channels + channel];
    }
  }
  lanes[0][threadIdx.y][threadIdx.x] = sums.first;
  lanes[1][threadIdx.y][threadIdx.x] = sums.second;
  block_barrier();
  Sums all;
  for (int lane = 0; threadIdx.y == 0 && lane < kFinishLanes; ++lane) {
    all.first += lanes[0][lane][threadIdx.x];
    all.second += lanes[1][lane][threadIdx.x];
  }
  return all;
}

// Sums of the differences from the channel's first value, and of their squares: differences from a
// value near the mean lose no digits.
template <int pack, typename T>
__global__ void sum_moments(Tiling t, const T* x, float* partial) {
  const Place p = place_of<pack>(t);
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
  const Sums sums = add_parts(partial, channels, channel, parts);
  if (threadIdx.y != 0 || channel >= channels) return;
  const float count = static_cast<float>(rows), shift = sums.first / count;
  const float mean = to_float(x[channel]) + shift;
  const float raw = sums.second / count - shift * shift;
  const float variance = raw > 0 ? raw : 0;
  s.saved_mean[channel] = mean;
  s.saved_variance[channel] = variance;
  if (s.mean_out) {
    s.mean_out[channel] = (1 - s.momentum) * s.mean[channel] + s.momentum * mean;
  }
  if (s.variance_out) {
    s.variance_out[channel] =
        (1 - s.momentum) * s.variance[channel] + s.momentum * (count / (count - 1)) * variance;
  }
}

struct Transform {
  const float *scale, *bias, *mean, *variance;
  float epsilon;
};

__device__ inline float deviation_inverse(float variance, float epsilon) {
  return 1 / sqrtf(variance + epsilon);
}

// mask: a byte a pack, a bit an element.
template <int pack, bool relu, typename T>
__global__ void transform(Tiling t, const T* x, const T* z, T* y, uint8_t* mask, Transform f) {
  const Place p = place_of<pack>(t);
  if (!p.inside(t)) return;
  float mean[pack], factor[pack], bias[pack];
#pragma unroll
  for (int i = 0; i < pack; ++i) {
    const int64_t c = p.channel + i;
    mean[i] = f.mean[c];
    factor[i] = f.scale[c] * deviation_inverse(f.variance[c], f.epsilon);
    bias[i] = f.bias[c];
  }
#pragma unroll 4
  for (int64_t row = p.begin + p.lane; row < p.end; row += p.lanes) {
    const int64_t at = row * t.channels + p.channel;
    auto values = load_floats<pack>(x, at);
#pragma unroll
    for (int i = 0; i < pack; ++i) values.at[i] = (values.at[i] - mean[i]) * factor[i] + bias[i];
    if (z) {
      const auto more = load_floats<pack>(z, at);
#pragma unroll
      for (int i = 0; i < pack; ++i) values.at[i] += more.at[i];
    }
    if (relu) {
      unsigned bits = 0;
#pragma unroll
      for (int i = 0; i < pack; ++i) {
        bits |= (values.at[i] > 0 ? 1u : 0u) << i;
        values.at[i] = values.at[i] > 0 ? values.at[i] : 0;
      }
      if (mask) mask[at / pack] = static_cast<uint8_t>(bits);
    }
    store_floats<pack>(y, at, values);
  }
}

template <typename T>
struct Gradients {
  const T* dy[kMostNormGradients];
  int count;
  const uint8_t* mask;
};

// The gradient before the relu, of the elements from `at` on.
template <int pack, typename T>
__device__ inline Pack<float, pack> gradient_at(const Gradients<T>& g, int64_t at) {
  auto sum = load_floats<pack>(g.dy[0], at);
#pragma unroll
  for (int k = 1; k < kMostNormGradients; ++k) {
    if (k >= g.count) break;
    const auto more = load_floats<pack>(g.dy[k], at);
#pragma unroll
    for (int i = 0; i < pack; ++i) sum.at[i] += more.at[i];
  }
  if (g.mask) {
    const unsigned bits = g.mask[at / pack];
#pragma unroll
    for (int i = 0; i < pack; ++i) sum.at[i] = bits >> i & 1u ? sum.at[i] : 0;
  }
  return sum;
}

// Sums of the gradient, and of the gradient times the normalised x; dz gets the gradient itself.
template <int pack, typename T>
__global__ void sum_gradients(Tiling t, const T* x, Gradients<T> g, T* dz, Transform f,
                              float* partial) {
  const Place p = place_of<pack>(t);
  float first[pack] = {}, second[pack] = {};
  if (p.inside(t)) {
    float mean[pack], inverse[pack];
#pragma unroll
    for (int i = 0; i < pack; ++i) {
      mean[i] = f.mean[p.channel + i];
      inverse[i] = deviation_inverse(f.variance[p.channel + i], f.epsilon);
    }
#pragma unroll 2
    for (int64_t row = p.begin + p.lane; row < p.end; row += p.lanes) {
      const int64_t at = row * t.channels + p.channel;
      const auto gradient = gradient_at<pack>(g, at);
      const auto values = load_floats<pack>(x, at);
#pragma unroll
      for (int i = 0; i < pack; ++i) {
        first[i] += gradient.at[i];
        second[i] += gradient.at[i] * ((values.at[i] - mean[i]) * inverse[i]);
      }
      if (dz) store_floats<pack>(dz, at, gradient);
    }
  }
  store_part<pack>(t, p, first, second, partial);
}

__global__ void finish_gradients(const float* partial, int64_t channels, int64_t parts,
                                 float* dscale, float* dbias) {
  const int64_t channel = static_cast<int64_t>(blockIdx.x) * kWarp + threadIdx.x;
  const Sums sums = add_parts(partial, channels, channel, parts);
  if (threadIdx.y != 0 || channel >= channels) return;
  dbias[channel] = sums.first;
  dscale[channel] = sums.second;
}

// dx = scale / deviation (gradient - its mean - normalised x times their mean product); the means
// are zero where the statistics are constants.
template <int pack, typename T>
__global__ void data_gradient(Tiling t, const T* x, Gradients<T> g, T* dx, Transform f,
                              const float* dscale, const float* dbias, float share) {
  const Place p = place_of<pack>(t);
  if (!p.inside(t)) return;
  float mean[pack], factor[pack], from_x[pack], constant[pack];
#pragma unroll
  for (int i = 0; i < pack; ++i) {
    const int64_t c = p.channel + i;
    const float inverse = deviation_inverse(f.variance[c], f.epsilon);
    mean[i] = f.mean[c];
    factor[i] = f.scale[c] * inverse;
    from_x[i] = inverse * dscale[c] * share;
    constant[i] = dbias[c] * share;
  }
#pragma unroll 2
  for (int64_t row = p.begin + p.lane; row < p.end; row += p.lanes) {
    const int64_t at = row * t.channels + p.channel;
    auto gradient = gradient_at<pack>(g, at);
    const auto values = load_floats<pack>(x, at);
#pragma unroll
    for (int i = 0; i < pack; ++i) {
      gradient.at[i] =
          factor[i] * (gradient.at[i] - constant[i] - (values.at[i] - mean[i]) * from_x[i]);
    }
    store_floats<pack>(dx, at, gradient);
  }
}

int64_t pack_of(const NormShape& shape) {
  const int64_t pack = 16 / static_cast<int64_t>(size_of(shape.dtype));
  return shape.channels % pack == 0 ? pack : 1;
}

struct Launch {
  Tiling tiling;
  dim3 grid;
  int64_t parts;
};

Launch launch_of(const NormShape& shape) {
  const int64_t packs = shape.channels / pack_of(shape);
  int columns = 1;
  while (columns < kMostColumns && columns < packs) columns *= 2;
  const int64_t tiles = ceil_div(packs, columns), lanes = kBlock / columns;
  const int64_t most = ceil_div(shape.rows, lanes * kRowsAThread);
  const int64_t wanted = std::max<int64_t>(1, std::min(most, ceil_div(kMostParts, tiles)));
  const int64_t rows_a_part = ceil_div(shape.rows, wanted);
  const int64_t parts = ceil_div(shape.rows, rows_a_part);
  return {{shape.rows, shape.channels, rows_a_part, columns},
          dim3(blocks_for(tiles, 1), static_cast<unsigned>(parts)),
          parts};
}

// Calls body(T(), pack) with the pack as a constant.
template <typename Body>
void dispatch_packs(const NormShape& shape, Body body) {
  dispatch(shape.dtype, [&](auto type) {
    using T = decltype(type);
    if (pack_of(shape) == 1) {
      body(type, std::integral_constant<int, 1>());
    } else {
      body(type, std::integral_constant<int, kPack<T>>());
    }
  });
}

dim3 finish_grid(const NormShape& shape) { return dim3(blocks_for(shape.channels, kWarp)); }

void copy(float* to, const float* from, int64_t channels, cudaStream_t stream) {
  if (!to || to == from) return;
  check(cudaMemcpyAsync(to, from, channels * sizeof(float), cudaMemcpyDeviceToDevice, stream),
        "copying statistics");
}

}  // namespace

// The parts' sums, and a place for two results a channel that nobody else keeps.
size_t norm_workspace(const NormShape& shape) {
  return static_cast<size_t>(launch_of(shape).parts + 1) * 2 * shape.channels * sizeof(float);
}

int64_t norm_mask_bytes(const NormShape& shape) {
  return shape.rows * shape.channels / pack_of(shape);
}

void norm_forward(const NormForward& n, cudaStream_t stream) {
  const auto [tiling, grid, parts] = launch_of(n.shape);
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
  dispatch_packs(n.shape, [&, tiling = tiling, grid = grid, parts = parts](auto type, auto pack) {
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
    launch(n.relu ? transform<kSize, true, T> : transform<kSize, false, T>, grid, kBlock, 0, stream,
           tiling, x, z, y, n.mask, f);
  });
}

void norm_backward(const NormBackward& n, cudaStream_t stream) {
  const auto [tiling, grid, parts] = launch_of(n.shape);
  const int64_t channels = n.shape.channels;
  float* partial = static_cast<float*>(n.workspace);
  float* spare = partial + parts * 2 * channels;
  float* dscale = n.dscale ? n.dscale : spare;
  float* dbias = n.dbias ? n.dbias : spare + channels;
  const Transform f{.scale = n.scale,
                    .bias = nullptr,
                    .mean = n.mean,
                    .variance = n.variance,
                    .epsilon = static_cast<float>(n.epsilon)};
  const float share = n.is_test ? 0 : 1 / static_cast<float>(n.shape.rows);
  dispatch_packs(n.shape, [&, tiling = tiling, grid = grid, parts = parts](auto type, auto pack) {
    using T = decltype(type);
    constexpr int kSize = decltype(pack)::value;
    const T* x = static_cast<const T*>(n.x);
    T *dx = static_cast<T*>(n.dx), *dz = static_cast<T*>(n.dz);
    Gradients<T> g{{}, n.gradients, n.mask};
    for (int i = 0; i < n.gradients; ++i) g.dy[i] = static_cast<const T*>(n.dy[i]);
    launch(sum_gradients<kSize, T>, grid, kBlock, 0, stream, tiling, x, g, dz, f, partial);
    launch(finish_gradients, finish_grid(n.shape), dim3(kWarp, kFinishLanes), 0, stream, partial,
           channels, parts, dscale, dbias);
    if (!dx) return;
    // dz holds the gradient by now, and may lie where a dy was.
    if (dz) g = {{dz}, 1, nullptr};
    launch(data_gradient<kSize, T>, grid, kBlock, 0, stream, tiling, x, g, dx, f, dscale, dbias,
           share);
  });
}

}  // namespace fleet::cuda
