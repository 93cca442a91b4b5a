#include <cmath>

#include "backend/cuda/types.h"
#include "exec/kernel.h"

namespace fleet {
namespace {

// unscale: null: 1.
__global__ void clip_scale(const float* square, const float* unscale, float* scale,
                           float clip_norm) {
  const float factor = unscale ? *unscale : 1.0f;
  const float norm = factor * sqrtf(*square);
  const bool finite = norm - norm == 0;
  *scale = finite ? factor * clip_norm / (norm > clip_norm ? norm : clip_norm) : NAN;
}

}  // namespace

FLEET_KERNEL(cuda, clip_scale) {
  def.create = [](KernelContext& context) {
    const float* square = context.inputs[0].as<const float>();
    const float* unscale = context.inputs[1].as<const float>();
    float* scale = context.outputs[0].as<float>();
    const auto clip_norm = static_cast<float>(context.attributes().number("clip_norm"));
    return make_kernel([=](Stream& stream) {
      cuda::launch(clip_scale, 1, 1, 0, cuda::stream_of(stream), square, unscale, scale, clip_norm);
    });
  };
}

}  // namespace fleet
