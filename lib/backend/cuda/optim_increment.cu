#include "backend/cuda/types.h"
#include "exec/kernel.h"

namespace fleet {
namespace {

__global__ void increment(int64_t* x) { ++*x; }

}  // namespace

FLEET_KERNEL(cuda, increment) {
  def.dtypes = {DType::kInt64};
  def.create = [](KernelContext& context) {
    int64_t* x = context.outputs[0].as<int64_t>();
    return make_kernel(
        [=](Stream& stream) { cuda::launch(increment, 1, 1, 0, cuda::stream_of(stream), x); });
  };
}

}  // namespace fleet
