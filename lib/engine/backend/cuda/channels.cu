#include <algorithm>

#include "backend/cuda/channels.h"
#include "backend/cuda/types.h"

namespace fleet::cuda {
namespace {

// A block sums kColumns packs of channels over its share of the rows: first per lane, then the
// lanes of a column in order. A second kernel adds the blocks' sums, in order.
constexpr int kColumns = 32, kLanes = 8;
constexpr int64_t kMaxChannelParts = 256, kRowsAPart = 512;

int64_t parts_of(const ChannelRows& image) {
  return std::clamp<int64_t>(ceil_div(image.rows, kRowsAPart), 1, kMaxChannelParts);
}

template <typename T, typename B>
__global__ void add(T* y, const B* bias, int64_t rows, int64_t channels, int64_t stored) {
  const int64_t i = thread_index();
  if (i >= rows * channels) return;
  const int64_t row = i / channels, channel = i % channels;
  T& value = y[row * stored + channel];
  value = from_float<T>(to_float(value) + to_float(bias[channel]));
}

template <int pack, typename T>
__global__ void sum_part(const T* x, float* partial, int64_t rows, int64_t channels, int64_t stored,
                         int64_t rows_a_part) {
  __shared__ float lanes[kLanes][kColumns * pack];
  const int64_t channel = (static_cast<int64_t>(blockIdx.x) * kColumns + threadIdx.x) * pack;
  const int64_t begin = blockIdx.y * rows_a_part;
  const int64_t end = begin + rows_a_part < rows ? begin + rows_a_part : rows;
  float sums[pack] = {};
  if (channel < channels) {
    for (int64_t row = begin + threadIdx.y; row < end; row += kLanes) {
      const auto values = load_floats<pack>(x, row * stored + channel);
#pragma unroll
      for (int i = 0; i < pack; ++i) sums[i] += values.at[i];
    }
  }
#pragma unroll
  for (int i = 0; i < pack; ++i) lanes[threadIdx.y][threadIdx.x * pack + i] = sums[i];
  block_barrier();
  if (threadIdx.y != 0) return;
  for (int i = 0; i < pack && channel + i < channels; ++i) {
    float sum = 0;
    for (int lane = 0; lane < kLanes; ++lane) sum += lanes[lane][threadIdx.x * pack + i];
    partial[blockIdx.y * channels + channel + i] = sum;
  }
}

template <typename T>
__global__ void add_channel_parts(const float* partial, T* sums, int64_t channels, int64_t parts) {
  const int64_t channel = thread_index();
  if (channel >= channels) return;
  float sum = 0;
  for (int64_t part = 0; part < parts; ++part) sum += partial[part * channels + channel];
  sums[channel] = from_float<T>(sum);
}

}  // namespace

void add_bias(const ChannelRows& image, void* y, const void* bias, DType bias_type,
              cudaStream_t stream) {
  dispatch(image.dtype, [&](auto type) {
    using T = decltype(type);
    dispatch(bias_type, [&](auto other) {
      using B = decltype(other);
      launch(add<T, B>, blocks_for(image.rows * image.channels), kBlock, 0, stream,
             static_cast<T*>(y), static_cast<const B*>(bias), image.rows, image.channels,
             image.stored);
    });
  });
}

size_t sum_rows_workspace(const ChannelRows& image) {
  return parts_of(image) * image.channels * sizeof(float);
}

void sum_rows(const ChannelRows& image, const void* x, void* sums, DType sums_type, void* workspace,
              cudaStream_t stream) {
  const int64_t parts = parts_of(image);
  float* partial = static_cast<float*>(workspace);
  dispatch(image.dtype, [&](auto type) {
    using T = decltype(type);
    const auto sum = [&](auto kernel, int pack) {
      const dim3 grid(blocks_for(image.channels, kColumns * pack), static_cast<unsigned>(parts));
      launch(kernel, grid, dim3(kColumns, kLanes), 0, stream, static_cast<const T*>(x), partial,
             image.rows, image.channels, image.stored, ceil_div(image.rows, parts));
    };
    const bool packed = image.channels % kPack<T> == 0 && image.stored % kPack<T> == 0;
    packed ? sum(sum_part<kPack<T>, T>, kPack<T>) : sum(sum_part<1, T>, 1);
  });
  dispatch(sums_type, [&](auto type) {
    using T = decltype(type);
    launch(add_channel_parts<T>, blocks_for(image.channels), kBlock, 0, stream, partial,
           static_cast<T*>(sums), image.channels, parts);
  });
}

std::unique_ptr<Kernel> add_bias_after(std::shared_ptr<Kernel> product, const ChannelRows& image,
                                       const Argument& y, const Argument& bias) {
  return make_kernel([=](Stream& stream) {
    if (product) product->run(stream);
    if (bias) add_bias(image, y.data, bias.data, bias.dtype, stream_of(stream));
  });
}

std::unique_ptr<Kernel> sum_rows_after(std::shared_ptr<Kernel> product, const ChannelRows& image,
                                       const Argument& x, const Argument& sums, void* workspace) {
  return make_kernel([=](Stream& stream) {
    if (product) product->run(stream);
    if (sums) sum_rows(image, x.data, sums.data, sums.dtype, workspace, stream_of(stream));
  });
}

}  // namespace fleet::cuda
