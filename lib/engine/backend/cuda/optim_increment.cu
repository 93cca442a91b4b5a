#include "backend/cuda/types.h"
#include "exec/kernel.h"

namespace fleet {
namespace {

// found_inf: null: never skipped.
__global__ void increment(int64_t* x, const int32_t* found_inf) {
  if (!found_inf || *found_inf == 0) ++*x;
}

}  // namespace

FLEET_KERNEL(cuda, increment) {
  def.dtypes = {DType::kInt64};
  def.create = [](KernelContext& context) {
    int64_t* x = context.outputs[0].as<int64_t>();
    const int32_t* found_inf = context.inputs[1].as<const int32_t>();
    return make_kernel([=](Stream& stream) {
      cuda::launch(increment, 1, 1, 0, cuda::stream_of(stream), x, found_inf);
    });
  };
}

}  // namespace fleet
