#include "backend/cuda/elementwise.h"
#include "backend/cuda/rows.h"
#include "ops/focal_loss.h"

namespace fleet {
namespace {

// Weights of positive targets: null, one for all classes, or one for each.
struct PositiveWeights {
  const float* values;
  bool one;
  __device__ float at(int64_t c) const { return values ? values[one ? 0 : c] : 1.0f; }
};

PositiveWeights weights_of(const KernelContext& context) {
  if (context.inputs.size() <= 2 || !context.inputs[2].data) return {nullptr, false};
  return {context.inputs[2].as<const float>(), context.inputs[2].shape[0] == 1};
}

template <typename T>
struct FocalLossRow {
  FocalLoss formula;
  PositiveWeights weights;
  const T* logits;
  const float* target;
  T* loss;
  int64_t classes;
  template <int threads>
  __device__ void operator()(cuda::RowThreads<threads> row_threads, int64_t n) const {
    float own = 0;
    for (int64_t c = row_threads.first(); c < classes; c += threads) {
      const int64_t i = n * classes + c;
      own += formula.loss(cuda::to_float(logits[i]), target[i], weights.at(c));
    }
    const float sum = row_threads.sum(own);
    if (row_threads.first() == 0) loss[n] = cuda::from_float<T>(sum / static_cast<float>(classes));
  }
};

template <typename T>
__global__ void focal_gradients(FocalLoss formula, PositiveWeights weights, const T* logits,
                                const float* target, const T* dloss, T* gradient, int64_t count,
                                int64_t classes) {
  const int64_t i = cuda::thread_index();
  if (i >= count) return;
  const int64_t n = cuda::quotient(i, classes);
  const float share = cuda::to_float(dloss[n]) / static_cast<float>(classes);
  const float slope =
      formula.slope(cuda::to_float(logits[i]), target[i], weights.at(i - n * classes));
  gradient[i] = cuda::from_float<T>(share * slope);
}

}  // namespace

FLEET_KERNEL(cuda, sigmoid_focal_loss) {
  def.dtypes = cuda::floating_types();
  def.create = [](KernelContext& context) {
    const Argument x = context.inputs[0], target = context.inputs[1], loss = context.outputs[0];
    const FocalLoss formula(context.attributes());
    const PositiveWeights weights = weights_of(context);
    return cuda::dispatch(x.dtype, [&](auto type) {
      using T = decltype(type);
      const FocalLossRow<T> row{formula,      weights,   x.as<const T>(), target.as<const float>(),
                                loss.as<T>(), x.shape[1]};
      return make_kernel([=, samples = x.shape[0]](Stream& stream) {
        cuda::launch_rows(cuda::stream_of(stream), samples, row.classes, row);
      });
    });
  };
}

FLEET_KERNEL(cuda, sigmoid_focal_loss_grad) {
  def.dtypes = cuda::floating_types();
  def.create = [](KernelContext& context) {
    const Argument x = context.inputs[0], target = context.inputs[1], dloss = context.inputs[3],
                   dx = context.outputs[0];
    const FocalLoss formula(context.attributes());
    const PositiveWeights weights = weights_of(context);
    return cuda::dispatch(x.dtype, [&](auto type) {
      using T = decltype(type);
      return make_kernel([=](Stream& stream) {
        const int64_t count = x.shape.elements();
        cuda::launch(focal_gradients<T>, cuda::blocks_for(count), cuda::kBlock, 0,
                     cuda::stream_of(stream), formula, weights, x.as<const T>(),
                     target.as<const float>(), dloss.as<const T>(), dx.as<T>(), count, x.shape[1]);
      });
    });
  };
}

}  // namespace fleet
