#include <cmath>

#include "backend/cuda/types.h"
#include "exec/kernel.h"

namespace fleet {
namespace {

// The pair of features (i, j), j < i, at position p of a sample: p = i (i - 1) / 2 + j.
struct FeaturePair {
  int64_t i, j;
  __device__ explicit FeaturePair(int64_t p) {
    i = static_cast<int64_t>((1 + sqrtf(1 + 8 * static_cast<float>(p))) / 2);
    while (i * (i - 1) / 2 > p) --i;  // the root is rounded
    while (i * (i + 1) / 2 <= p) ++i;
    j = p - i * (i - 1) / 2;
  }
};

// One thread per pair of a sample.
template <typename T>
__global__ void dot_products(int64_t count, int64_t features, int64_t size, const T* x, T* y) {
  const int64_t at = cuda::thread_index();
  if (at >= count) return;
  const int64_t pairs = features * (features - 1) / 2, n = cuda::quotient(at, pairs);
  const FeaturePair pair(at - n * pairs);
  const T* a = x + (n * features + pair.i) * size;
  const T* b = x + (n * features + pair.j) * size;
  float sum = 0;
  for (int64_t d = 0; d < size; ++d) sum += cuda::to_float(a[d]) * cuda::to_float(b[d]);
  y[at] = cuda::from_float<T>(sum);
}

// One thread per element.
template <typename T>
__global__ void dot_gradients(int64_t count, int64_t features, int64_t size, const T* x,
                              const T* dy, T* dx) {
  const int64_t at = cuda::thread_index();
  if (at >= count) return;
  const int64_t row = cuda::quotient(at, size), d = at - row * size;
  const int64_t n = cuda::quotient(row, features), i = row - n * features;
  const T* slopes = dy + n * (features * (features - 1) / 2);
  float sum = 0;
  for (int64_t j = 0; j < features; ++j) {
    if (j == i) continue;
    const int64_t pair = j < i ? i * (i - 1) / 2 + j : j * (j - 1) / 2 + i;
    sum += cuda::to_float(slopes[pair]) * cuda::to_float(x[(n * features + j) * size + d]);
  }
  dx[at] = cuda::from_float<T>(sum);
}

}  // namespace

FLEET_KERNEL(cuda, dot_interaction) {
  def.dtypes = cuda::floating_types();
  def.create = [](KernelContext& context) {
    const Argument x = context.inputs[0], y = context.outputs[0];
    return cuda::dispatch(x.dtype, [&](auto type) {
      using T = decltype(type);
      return make_kernel([=](Stream& stream) {
        const int64_t count = y.shape.elements();
        cuda::launch(dot_products<T>, cuda::blocks_for(count), cuda::kBlock, 0,
                     cuda::stream_of(stream), count, x.shape[1], x.shape[2], x.as<const T>(),
                     y.as<T>());
      });
    });
  };
}

FLEET_KERNEL(cuda, dot_interaction_grad) {
  def.dtypes = cuda::floating_types();
  def.create = [](KernelContext& context) {
    const Argument x = context.inputs[0], dy = context.inputs[1], dx = context.outputs[0];
    return cuda::dispatch(x.dtype, [&](auto type) {
      using T = decltype(type);
      return make_kernel([=](Stream& stream) {
        const int64_t count = x.shape.elements();
        cuda::launch(dot_gradients<T>, cuda::blocks_for(count), cuda::kBlock, 0,
                     cuda::stream_of(stream), count, x.shape[1], x.shape[2], x.as<const T>(),
                     dy.as<const T>(), dx.as<T>());
      });
    });
  };
}

}  // namespace fleet
