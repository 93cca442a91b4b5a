#include <cmath>

#include "backend/cuda/elementwise.h"
#include "backend/cuda/rows.h"

namespace fleet {
namespace {

template <typename T>
struct BinaryLossRow {
  const T* logits;
  const float* target;
  T* loss;
  int64_t classes;
  template <int threads>
  __device__ void operator()(cuda::RowThreads<threads> row_threads, int64_t n) const {
    float own = 0;
    for (int64_t c = row_threads.first(); c < classes; c += threads) {
      const float x = cuda::to_float(logits[n * classes + c]);
      own += fmaxf(x, 0) - x * target[n * classes + c] + log1pf(expf(-fabsf(x)));
    }
    const float sum = row_threads.sum(own);
    if (row_threads.first() == 0) loss[n] = cuda::from_float<T>(sum / static_cast<float>(classes));
  }
};

template <typename T>
__global__ void binary_gradients(const T* logits, const float* target, const T* dloss, T* gradient,
                                 int64_t count, int64_t classes) {
  const int64_t i = cuda::thread_index();
  if (i >= count) return;
  const float share =
      cuda::to_float(dloss[cuda::quotient(i, classes)]) / static_cast<float>(classes);
  const float probability = 1 / (1 + expf(-cuda::to_float(logits[i])));
  gradient[i] = cuda::from_float<T>(share * (probability - target[i]));
}

}  // namespace

FLEET_KERNEL(cuda, sigmoid_cross_entropy) {
  def.dtypes = cuda::floating_types();
  def.create = [](KernelContext& context) {
    const Argument x = context.inputs[0], target = context.inputs[1], loss = context.outputs[0];
    return cuda::dispatch(x.dtype, [&](auto type) {
      using T = decltype(type);
      const BinaryLossRow<T> row{x.as<const T>(), target.as<const float>(), loss.as<T>(),
                                 x.shape[1]};
      return make_kernel([=, samples = x.shape[0]](Stream& stream) {
        cuda::launch_rows(cuda::stream_of(stream), samples, row.classes, row);
      });
    });
  };
}

FLEET_KERNEL(cuda, sigmoid_cross_entropy_grad) {
  def.dtypes = cuda::floating_types();
  def.create = [](KernelContext& context) {
    const Argument x = context.inputs[0], target = context.inputs[1], dloss = context.inputs[2],
                   dx = context.outputs[0];
    return cuda::dispatch(x.dtype, [&](auto type) {
      using T = decltype(type);
      return make_kernel([=](Stream& stream) {
        const int64_t count = x.shape.elements();
        cuda::launch(binary_gradients<T>, cuda::blocks_for(count), cuda::kBlock, 0,
                     cuda::stream_of(stream), x.as<const T>(), target.as<const float>(),
                     dloss.as<const T>(), dx.as<T>(), count, x.shape[1]);
      });
    });
  };
}

}  // namespace fleet
