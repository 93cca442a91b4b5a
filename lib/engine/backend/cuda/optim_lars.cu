#include "backend/cuda/optim_trust.h"

namespace fleet {
namespace {

struct LarsConstants {
  float scale, momentum, decay, coupled;
  __device__ float gradient_of(float parameter, float gradient) const {
    return gradient * scale + coupled * parameter;
  }
  __device__ void measure(float parameter, float gradient, cuda::TrustSums& sums, float&) const {
    const float g = gradient_of(parameter, gradient);
    sums.first += parameter * parameter;
    sums.second += g * g;
  }
  __device__ void update(float& parameter, float gradient, float rate, float& velocity) const {
    const float g = gradient_of(parameter, gradient);
    velocity = momentum * velocity + rate * (g + decay * parameter);
    parameter -= velocity;
  }
};

struct LarsRule {
  static constexpr int kStates = 1;
  float momentum, coeff, decay, coupled, epsilon;
  explicit LarsRule(const Attributes& attributes)
      : momentum(static_cast<float>(attributes.number("momentum"))),
        coeff(static_cast<float>(attributes.number("lars_coeff"))),
        decay(static_cast<float>(attributes.number("weight_decay"))),
        coupled(static_cast<float>(attributes.number("coupled_weight_decay"))),
        epsilon(static_cast<float>(attributes.number("epsilon"))) {}
  __device__ LarsConstants at(float scale) const { return {scale, momentum, decay, coupled}; }
  __device__ float rate_of(float rate, cuda::TrustSums sums) const {
    if (!(decay > 0) || !(sums.first > 0) || !(sums.second > 0)) return rate;
    const float p = sqrtf(sums.first), g = sqrtf(sums.second);
    return rate * coeff * p / (g + decay * p + epsilon);
  }
};

}  // namespace

FLEET_KERNEL(cuda, lars) {
  def.layouts = cuda::trust_layouts;
  def.create = [](KernelContext& context) {
    return cuda::trust_kernel(context, LarsRule(context.attributes()));
  };
}

}  // namespace fleet
