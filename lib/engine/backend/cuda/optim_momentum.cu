#include "backend/cuda/optim_update.h"

namespace fleet {
namespace {

struct MomentumConstants {
  float scale, rate, momentum, decay;
  bool nesterov;
  __device__ void update(float& parameter, float gradient, float& velocity) const {
    const float d = gradient * scale + decay * parameter;
    velocity = momentum * velocity + d;
    parameter -= rate * (nesterov ? d + momentum * velocity : velocity);
  }
};

struct MomentumRule {
  static constexpr int kStates = 1;
  float momentum, decay;
  bool nesterov;
  __device__ MomentumConstants at(float rate, float scale) const {
    return {scale, rate, momentum, decay, nesterov};
  }
};

}  // namespace

FLEET_KERNEL(cuda, momentum) {
  def.layouts = cuda::update_layouts;
  def.create = [](KernelContext& context) {
    return cuda::update_kernel(
        context, MomentumRule{static_cast<float>(context.attributes().number("momentum")),
                              static_cast<float>(context.attributes().number("weight_decay")),
                              context.attributes().boolean("use_nesterov")});
  };
}

}  // namespace fleet
