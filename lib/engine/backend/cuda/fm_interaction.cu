#include "backend/cuda/rows.h"
#include "exec/kernel.h"

namespace fleet {
namespace {

// The threads of a sample share its columns: each sums its own over the features.
template <typename T>
struct FmSum {
  const T* x;
  T* y;
  int64_t features, size;
  template <int threads>
  __device__ void operator()(cuda::RowThreads<threads> sample, int64_t n) const {
    float own = 0;
    for (int64_t d = sample.first(); d < size; d += threads) {
      float sum = 0, squares = 0;
      for (int64_t f = 0; f < features; ++f) {
        const float value = cuda::to_float(x[(n * features + f) * size + d]);
        sum += value;
        squares += value * value;
      }
      own += sum * sum - squares;
    }
    const float total = sample.sum(own);
    if (sample.first() == 0) y[n] = cuda::from_float<T>(total / 2);
  }
};

// One thread per column of a sample.
template <typename T>
__global__ void fm_gradients(int64_t count, int64_t features, int64_t size, const T* x, const T* dy,
                             T* dx) {
  const int64_t i = cuda::thread_index();
  if (i >= count) return;
  const int64_t n = cuda::quotient(i, size), d = i - n * size;
  const int64_t first = n * features * size + d;
  const float slope = cuda::to_float(dy[n]);
  float sum = 0;
  for (int64_t f = 0; f < features; ++f) sum += cuda::to_float(x[first + f * size]);
  for (int64_t f = 0; f < features; ++f) {
    const int64_t at = first + f * size;
    dx[at] = cuda::from_float<T>(slope * (sum - cuda::to_float(x[at])));
  }
}

}  // namespace

FLEET_KERNEL(cuda, fm_interaction) {
  def.dtypes = cuda::floating_types();
  def.create = [](KernelContext& context) {
    const Argument x = context.inputs[0], y = context.outputs[0];
    return cuda::dispatch(x.dtype, [&](auto type) {
      using T = decltype(type);
      const FmSum<T> sum{x.as<const T>(), y.as<T>(), x.shape[1], x.shape[2]};
      return make_kernel([=, samples = x.shape[0]](Stream& stream) {
        cuda::launch_rows(cuda::stream_of(stream), samples, sum.size, sum);
      });
    });
  };
}

FLEET_KERNEL(cuda, fm_interaction_grad) {
  def.dtypes = cuda::floating_types();
  def.create = [](KernelContext& context) {
    const Argument x = context.inputs[0], dy = context.inputs[1], dx = context.outputs[0];
    return cuda::dispatch(x.dtype, [&](auto type) {
      using T = decltype(type);
      return make_kernel([=](Stream& stream) {
        const int64_t count = x.shape[0] * x.shape[2];
        cuda::launch(fm_gradients<T>, cuda::blocks_for(count), cuda::kBlock, 0,
                     cuda::stream_of(stream), count, x.shape[1], x.shape[2], x.as<const T>(),
                     dy.as<const T>(), dx.as<T>());
      });
    });
  };
}

}  // namespace fleet
