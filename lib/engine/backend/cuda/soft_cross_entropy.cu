#include <cmath>

#include "backend/cuda/rows.h"
#include "exec/kernel.h"

namespace fleet {
namespace {

// Of a row: the largest logit, and the sum of exp(x - largest).
struct SoftmaxSums {
  float largest, sum;

  template <typename T, typename RowThreads>
  static __device__ SoftmaxSums of(const RowThreads& threads, int stride, const T* x,
                                   int64_t classes) {
    SoftmaxSums row{cuda::Max::kIdentity, 0};
    for (int64_t c = threads.first(); c < classes; c += stride) {
      row.largest = cuda::Max::of(row.largest, cuda::to_float(x[c]));
    }
    row.largest = threads.max(row.largest);
    for (int64_t c = threads.first(); c < classes; c += stride) {
      row.sum += expf(cuda::to_float(x[c]) - row.largest);
    }
    row.sum = threads.sum(row.sum);
    return row;
  }
};

struct Smoothing {
  float own, rest;
  Smoothing(const Attributes& attributes, int64_t classes) {
    const double amount = attributes.number("label_smoothing");
    own = static_cast<float>(1 - amount);
    rest = static_cast<float>(amount / static_cast<double>(classes));
  }
  __device__ float of(float share) const { return share * own + rest; }
};

template <typename T>
struct SoftLossRow {
  const T* logits;
  const float* target;
  T* loss;
  int64_t classes;
  Smoothing smoothing;
  bool divergence;
  template <int threads>
  __device__ void operator()(cuda::RowThreads<threads> row_threads, int64_t n) const {
    const T* x = logits + n * classes;
    const float* t = target + n * classes;
    const SoftmaxSums row = SoftmaxSums::of(row_threads, threads, x, classes);
    const float norm = logf(row.sum);
    float own = 0;
    for (int64_t c = row_threads.first(); c < classes; c += threads) {
      const float share = smoothing.of(t[c]);
      if (share == 0) continue;  // 0 log 0 = 0
      const float entropy = divergence ? logf(share) : 0;
      own += share * (entropy + norm - (cuda::to_float(x[c]) - row.largest));
    }
    const float sum = row_threads.sum(own);
    if (row_threads.first() == 0) loss[n] = cuda::from_float<T>(sum);
  }
};

// dx may equal x: every thread reads its elements before it writes them.
template <typename T>
struct SoftGradientRow {
  const T* logits;
  const float* target;
  const T* dloss;
  T* dlogits;
  int64_t classes;
  Smoothing smoothing;
  template <int threads>
  __device__ void operator()(cuda::RowThreads<threads> row_threads, int64_t n) const {
    const int64_t at = n * classes;
    const SoftmaxSums row = SoftmaxSums::of(row_threads, threads, logits + at, classes);
    float total = 0;
    for (int64_t c = row_threads.first(); c < classes; c += threads) {
      total += smoothing.of(target[at + c]);
    }
    const float factor = row_threads.sum(total) / row.sum, slope = cuda::to_float(dloss[n]);
    for (int64_t c = row_threads.first(); c < classes; c += threads) {
      const float share = expf(cuda::to_float(logits[at + c]) - row.largest) * factor;
      dlogits[at + c] = cuda::from_float<T>(slope * (share - smoothing.of(target[at + c])));
    }
  }
};

}  // namespace

FLEET_KERNEL(cuda, soft_cross_entropy) {
  def.dtypes = cuda::floating_types();
  def.create = [](KernelContext& context) {
    const Argument x = context.inputs[0], target = context.inputs[1], loss = context.outputs[0];
    const Smoothing smoothing(context.attributes(), x.shape[1]);
    const bool divergence = context.attributes().boolean("divergence");
    return cuda::dispatch(x.dtype, [&](auto type) {
      using T = decltype(type);
      const SoftLossRow<T> row{x.as<const T>(), target.as<const float>(),
                               loss.as<T>(),    x.shape[1],
                               smoothing,       divergence};
      return make_kernel([=, samples = x.shape[0]](Stream& stream) {
        cuda::launch_rows(cuda::stream_of(stream), samples, row.classes, row);
      });
    });
  };
}

FLEET_KERNEL(cuda, soft_cross_entropy_grad) {
  def.dtypes = cuda::floating_types();
  def.create = [](KernelContext& context) {
    const Argument x = context.inputs[0], target = context.inputs[1], dloss = context.inputs[2],
                   dx = context.outputs[0];
    const Smoothing smoothing(context.attributes(), x.shape[1]);
    return cuda::dispatch(x.dtype, [&](auto type) {
      using T = decltype(type);
      const SoftGradientRow<T> row{x.as<const T>(),     target.as<const float>(),
                                   dloss.as<const T>(), dx.as<T>(),
                                   x.shape[1],          smoothing};
      return make_kernel([=, samples = x.shape[0]](Stream& stream) {
        cuda::launch_rows(cuda::stream_of(stream), samples, row.classes, row);
      });
    });
  };
}

}  // namespace fleet
