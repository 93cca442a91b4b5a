#include "backend/cuda/pooling.h"
#include "backend/cuda/types.h"

namespace fleet::cuda {
namespace {

// A thread sums a pack of channels of one image over every kRows-th pixel; then the rows are added
// in shared memory, always in the same order.
constexpr int kColumns = 32, kRows = 8;

template <int pack, typename T>
__global__ void average(const T* x, T* y, int64_t pixels, int64_t channels) {
  __shared__ float rows[kRows][kColumns * pack];
  const int64_t column = static_cast<int64_t>(blockIdx.y) * kColumns + threadIdx.x;
  const int64_t image = blockIdx.x;
  const bool inside = column * pack < channels;
  float sums[pack] = {};
  for (int64_t pixel = threadIdx.y; inside && pixel < pixels; pixel += kRows) {
    const auto values = load_floats<pack>(x, (image * pixels + pixel) * channels + column * pack);
#pragma unroll
    for (int i = 0; i < pack; ++i) sums[i] += values.at[i];
  }
#pragma unroll
  for (int i = 0; i < pack; ++i) rows[threadIdx.y][threadIdx.x * pack + i] = sums[i];
  block_barrier();
  if (!inside || threadIdx.y != 0) return;
  const float scale = 1 / static_cast<float>(pixels);
  Pack<float, pack> means;
#pragma unroll
  for (int i = 0; i < pack; ++i) {
    float sum = 0;
    for (int row = 0; row < kRows; ++row) sum += rows[row][threadIdx.x * pack + i];
    means.at[i] = sum * scale;
  }
  store_floats<pack>(y, image * channels + column * pack, means);
}

template <int pack, typename T>
__global__ void spread(const T* dy, T* dx, int64_t pixels, int64_t channels, int64_t packs) {
  const int64_t unit = thread_index();  // a pack of dx
  if (unit >= packs) return;
  const int64_t columns = channels / pack, pixel = quotient(unit, columns);
  const int64_t column = unit - pixel * columns, image = quotient(pixel, pixels);
  Pack<float, pack> values = load_floats<pack>(dy, image * channels + column * pack);
  const float scale = 1 / static_cast<float>(pixels);
#pragma unroll
  for (int i = 0; i < pack; ++i) values.at[i] *= scale;
  store_floats<pack>(dx, unit * pack, values);
}

template <int pack, typename T>
void run_average(const GlobalPooling& p, const void* x, void* y, cudaStream_t stream) {
  // Images are the first dimension: the second has at most 65535 blocks.
  const dim3 grid(static_cast<unsigned>(p.batch), blocks_for(p.channels, kColumns * pack));
  launch(average<pack, T>, grid, dim3(kColumns, kRows), 0, stream, static_cast<const T*>(x),
         static_cast<T*>(y), p.pixels, p.channels);
}

template <int pack, typename T>
void run_spread(const GlobalPooling& p, const void* dy, void* dx, cudaStream_t stream) {
  const int64_t packs = p.batch * p.pixels * p.channels / pack;
  launch(spread<pack, T>, blocks_for(packs), kBlock, 0, stream, static_cast<const T*>(dy),
         static_cast<T*>(dx), p.pixels, p.channels, packs);
}

}  // namespace

void global_average(const GlobalPooling& p, const void* x, void* y, cudaStream_t stream) {
  dispatch(p.dtype, [&](auto type) {
    using T = decltype(type);
    p.channels % kPack<T> == 0 ? run_average<kPack<T>, T>(p, x, y, stream)
                               : run_average<1, T>(p, x, y, stream);
  });
}

void global_average_grad(const GlobalPooling& p, const void* dy, void* dx, cudaStream_t stream) {
  dispatch(p.dtype, [&](auto type) {
    using T = decltype(type);
    p.channels % kPack<T> == 0 ? run_spread<kPack<T>, T>(p, dy, dx, stream)
                               : run_spread<1, T>(p, dy, dx, stream);
  });
}

}  // namespace fleet::cuda
