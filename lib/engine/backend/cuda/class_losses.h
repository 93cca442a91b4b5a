// Losses of [samples, classes] logits with a target each, the mean over the classes of a sample.
// `formula` has loss(logit, target, class) and slope(), its derivative by the logit. For .cu files.
#pragma once

#include "backend/cuda/elementwise.h"
#include "backend/cuda/rows.h"

namespace fleet::cuda {

template <typename T, typename Formula>
struct ClassLossRow {
  Formula formula;
  const T* logits;
  const float* target;
  T* loss;
  int64_t classes;
  template <int threads>
  __device__ void operator()(RowThreads<threads> row_threads, int64_t n) const {
    float own = 0;
    for (int64_t c = row_threads.first(); c < classes; c += threads) {
      const int64_t i = n * classes + c;
      own += formula.loss(to_float(logits[i]), target[i], c);
    }
    const float sum = row_threads.sum(own);
    if (row_threads.first() == 0) loss[n] = from_float<T>(sum / static_cast<float>(classes));
  }
};

template <typename T, typename Formula>
__global__ void class_gradients(Formula formula, const T* logits, const float* target,
                                const T* dloss, T* gradient, int64_t count, int64_t classes) {
  const int64_t i = thread_index();
  if (i >= count) return;
  const int64_t n = quotient(i, classes);
  const float share = to_float(dloss[n]) / static_cast<float>(classes);
  const float slope = formula.slope(to_float(logits[i]), target[i], i - n * classes);
  gradient[i] = from_float<T>(share * slope);
}

template <typename Formula>
std::unique_ptr<Kernel> class_losses(const Argument& x, const Argument& target,
                                     const Argument& loss, Formula formula) {
  return dispatch(x.dtype, [&](auto type) {
    using T = decltype(type);
    const ClassLossRow<T, Formula> row{formula, x.as<const T>(), target.as<const float>(),
                                       loss.as<T>(), x.shape[1]};
    return make_kernel([=, samples = x.shape[0]](Stream& stream) {
      launch_rows(stream_of(stream), samples, row.classes, row);
    });
  });
}

// Their gradients by the logits.
template <typename Formula>
std::unique_ptr<Kernel> class_loss_gradients(const Argument& x, const Argument& target,
                                             const Argument& dloss, const Argument& dx,
                                             Formula formula) {
  return dispatch(x.dtype, [&](auto type) {
    using T = decltype(type);
    return make_kernel([=](Stream& stream) {
      const int64_t count = x.shape.elements();
      launch(class_gradients<T, Formula>, blocks_for(count), kBlock, 0, stream_of(stream), formula,
             x.as<const T>(), target.as<const float>(), dloss.as<const T>(), dx.as<T>(), count,
             x.shape[1]);
    });
  });
}

}  // namespace fleet::cuda
