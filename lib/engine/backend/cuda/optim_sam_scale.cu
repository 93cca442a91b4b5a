#include "backend/cuda/types.h"
#include "exec/kernel.h"

namespace fleet {
namespace {

// loss_scaling: null: 1.
__global__ void sam_scale(const float* square, const float* loss_scaling, float* scale, float rho) {
  const float factor = loss_scaling ? *loss_scaling : 1.0f;
  *scale = -rho / (sqrtf(*square) + 1e-12f * factor);
}

}  // namespace

FLEET_KERNEL(cuda, sam_scale) {
  def.create = [](KernelContext& context) {
    const float* square = context.inputs[0].as<const float>();
    const float* loss_scaling = context.inputs[1].as<const float>();
    float* scale = context.outputs[0].as<float>();
    const auto rho = static_cast<float>(context.attributes().number("rho"));
    return make_kernel([=](Stream& stream) {
      cuda::launch(sam_scale, 1, 1, 0, cuda::stream_of(stream), square, loss_scaling, scale, rho);
    });
  };
}

}  // namespace fleet
