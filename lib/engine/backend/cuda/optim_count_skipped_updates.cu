#include "backend/cuda/types.h"
#include "exec/kernel.h"

namespace fleet {
namespace {

// scale: null: the loss is not scaled.
__global__ void count_skipped(const int32_t* found_inf, const float* loss, const float* scale,
                              int64_t* skipped) {
  const bool finite = *loss - *loss == 0;
  const bool hopeless = !scale || *scale <= 1 || !finite;
  *skipped = *found_inf != 0 && hopeless ? *skipped + 1 : 0;
}

}  // namespace

FLEET_KERNEL(cuda, count_skipped_updates) {
  def.create = [](KernelContext& context) {
    int64_t* skipped = context.outputs[0].as<int64_t>();
    const int32_t* found_inf = context.inputs[1].as<const int32_t>();
    const float* loss = context.inputs[2].as<const float>();
    const float* scale = context.inputs[3].as<const float>();
    return make_kernel([=](Stream& stream) {
      cuda::launch(count_skipped, 1, 1, 0, cuda::stream_of(stream), found_inf, loss, scale,
                   skipped);
    });
  };
}

}  // namespace fleet
