#include "backend/cuda/optim_update.h"

namespace fleet {
namespace {

struct LionConstants {
  float scale, rate;
  float keep;  // factor of the parameter after decay
  float beta1, rest1, beta2, rest2;
  __device__ void update(float& parameter, float gradient, float& momentum) const {
    const float g = gradient * scale;
    const float direction = beta1 * momentum + rest1 * g;
    const float sign = (direction > 0 ? 1.f : 0.f) - (direction < 0 ? 1.f : 0.f);
    parameter = parameter * keep - rate * sign;
    momentum = beta2 * momentum + rest2 * g;
  }
};

struct LionRule {
  static constexpr int kStates = 1;
  float beta1, rest1, beta2, rest2, decay;
  __device__ LionConstants at(float rate, float scale) const {
    return {scale, rate, 1 - rate * decay, beta1, rest1, beta2, rest2};
  }
};

}  // namespace

FLEET_KERNEL(cuda, lion) {
  def.layouts = cuda::update_layouts;
  def.create = [](KernelContext& context) {
    const double beta1 = context.attributes().number("beta1");
    const double beta2 = context.attributes().number("beta2");
    const double decay = context.attributes().number("weight_decay");
    return cuda::update_kernel(context,
                               LionRule{static_cast<float>(beta1), static_cast<float>(1 - beta1),
                                        static_cast<float>(beta2), static_cast<float>(1 - beta2),
                                        static_cast<float>(decay)});
  };
}

}  // namespace fleet
