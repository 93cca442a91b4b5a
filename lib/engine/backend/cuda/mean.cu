#include "backend/cuda/reduce.h"

namespace fleet {
namespace {

struct Same {
  __device__ float operator()(float x) const { return x; }
};

template <typename T>
__global__ void spread_mean(const T* dmean, T* dx, int64_t count) {
  const int64_t i = cuda::thread_index();
  if (i < count) {
    dx[i] = cuda::from_float<T>(cuda::to_float(*dmean) / static_cast<float>(count));
  }
}

}  // namespace

FLEET_KERNEL(cuda, mean) {
  def.dtypes = cuda::floating_types();
  def.layouts = cuda::reduce_layouts;
  def.create = [](KernelContext& context) {
    const auto count = static_cast<float>(context.inputs[0].shape.elements());
    return cuda::reduce_kernel(context, Same(), 1 / count);
  };
}

FLEET_KERNEL(cuda, mean_grad) {
  def.dtypes = cuda::floating_types();
  def.create = [](KernelContext& context) {
    const Argument dmean = context.inputs[0], dx = context.outputs[0];
    const int64_t count = dx.shape.elements();
    return cuda::dispatch(dx.dtype, [&](auto type) {
      using T = decltype(type);
      return make_kernel([=](Stream& stream) {
        cuda::launch(spread_mean<T>, cuda::blocks_for(count), cuda::kBlock, 0,
                     cuda::stream_of(stream), dmean.as<const T>(), dx.as<T>(), count);
      });
    });
  };
}

}  // namespace fleet
