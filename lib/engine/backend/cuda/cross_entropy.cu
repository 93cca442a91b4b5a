#include <cfloat>
#include <cmath>

#include "backend/cuda/labels.h"
#include "backend/cuda/types.h"

namespace fleet {
namespace {

// Clamps a vanished probability to the smallest normal number, so that the loss stays finite.
__device__ float bounded(float probability) {
  return probability < FLT_MIN ? FLT_MIN : probability;
}

template <typename T>
__global__ void losses(cuda::Labels labels, const T* probability, T* loss) {
  const int64_t n = cuda::thread_index();
  if (n >= labels.samples) return;
  float value = 0;
  if (!labels.ignored(n)) {
    value = labels.is_class(n)
                ? -logf(bounded(cuda::to_float(probability[n * labels.classes + labels.label[n]])))
                : NAN;
  }
  loss[n] = cuda::from_float<T>(value);
}

template <typename T>
__global__ void gradients(cuda::Labels labels, const T* probability, const T* dloss, T* gradient) {
  const int64_t i = cuda::thread_index();
  if (i >= labels.samples * labels.classes) return;
  const int64_t n = cuda::quotient(i, labels.classes);
  const bool counts = !labels.ignored(n) && labels.label[n] == i - n * labels.classes;
  gradient[i] = cuda::from_float<T>(
      counts ? -cuda::to_float(dloss[n]) / bounded(cuda::to_float(probability[i])) : 0);
}

}  // namespace

FLEET_KERNEL(cuda, cross_entropy) {
  def.dtypes = cuda::floating_types();
  def.create = [](KernelContext& context) {
    const Argument x = context.inputs[0], loss = context.outputs[0];
    const cuda::Labels labels(context, x, context.inputs[1]);
    return cuda::dispatch(x.dtype, [&](auto type) {
      using T = decltype(type);
      return make_kernel([=](Stream& stream) {
        cuda::launch(losses<T>, cuda::blocks_for(labels.samples), cuda::kBlock, 0,
                     cuda::stream_of(stream), labels, x.as<const T>(), loss.as<T>());
      });
    });
  };
}

FLEET_KERNEL(cuda, cross_entropy_grad) {
  def.dtypes = cuda::floating_types();
  def.create = [](KernelContext& context) {
    const Argument x = context.inputs[0], dloss = context.inputs[2], dx = context.outputs[0];
    const cuda::Labels labels(context, x, context.inputs[1]);
    return cuda::dispatch(x.dtype, [&](auto type) {
      using T = decltype(type);
      return make_kernel([=](Stream& stream) {
        cuda::launch(gradients<T>, cuda::blocks_for(labels.samples * labels.classes), cuda::kBlock,
                     0, cuda::stream_of(stream), labels, x.as<const T>(), dloss.as<const T>(),
                     dx.as<T>());
      });
    });
  };
}

}  // namespace fleet
