#include "backend/cuda/types.h"
#include "exec/kernel.h"

namespace fleet {
namespace {

// One block: one value per sample, of one batch.
template <typename T>
__global__ void weighted_sums(const T* value, const float* weight, int64_t count, float* sums) {
  float sum = 0, total = 0;
  for (int64_t i = threadIdx.x; i < count; i += cuda::kBlock) {
    if (weight[i] == 0) continue;
    sum += weight[i] * cuda::to_float(value[i]);
    total += weight[i];
  }
  sum = cuda::block_sum<cuda::kBlock>(sum);
  total = cuda::block_sum<cuda::kBlock>(total);
  if (threadIdx.x != 0) return;
  sums[0] = sum;
  sums[1] = total;
}

}  // namespace

FLEET_KERNEL(cuda, weighted_sum) {
  def.dtypes = cuda::floating_types();
  def.create = [](KernelContext& context) {
    const Argument value = context.inputs[0], weight = context.inputs[1];
    float* sums = context.outputs[0].as<float>();
    FLEET_CHECK(weight.dtype == DType::kFloat32, "weights of samples are float32");
    return cuda::dispatch(value.dtype, [&](auto type) {
      using T = decltype(type);
      return make_kernel([=](Stream& stream) {
        cuda::launch(weighted_sums<T>, 1, cuda::kBlock, 0, cuda::stream_of(stream),
                     value.as<const T>(), weight.as<const float>(), value.shape.elements(), sums);
      });
    });
  };
}

}  // namespace fleet
