#include <cmath>

#include "backend/cuda/optim_trust.h"

namespace fleet {
namespace {

struct LambConstants {
  float scale;
  float beta1, beta2, epsilon;
  float rest1, rest2;              // 1 - beta1, 1 - beta2, rounded once
  float correction1, correction2;  // 1 / (1 - beta1^t), 1 / sqrt(1 - beta2^t)
  float decay, coupled;
  __device__ float direction(float parameter, float moment1, float moment2) const {
    return moment1 * correction1 / (sqrtf(moment2) * correction2 + epsilon) + decay * parameter;
  }
  __device__ void measure(float parameter, float gradient, cuda::TrustSums& sums, float& moment1,
                          float& moment2) const {
    const float g = gradient * scale + coupled * parameter;
    moment1 = beta1 * moment1 + rest1 * g;
    moment2 = beta2 * moment2 + rest2 * g * g;
    const float r = direction(parameter, moment1, moment2);
    sums.first += parameter * parameter;
    sums.second += r * r;
  }
  __device__ void update(float& parameter, float, float rate, float& moment1,
                         float& moment2) const {
    parameter -= rate * direction(parameter, moment1, moment2);
  }
};

struct LambRule {
  static constexpr int kStates = 2;
  const int64_t* step;
  float beta1, beta2, rest1, rest2, epsilon, decay, coupled;
  float log_beta1, log_beta2;

  LambRule(const Attributes& attributes, const int64_t* step_of)
      : step(step_of),
        epsilon(static_cast<float>(attributes.number("epsilon"))),
        decay(static_cast<float>(attributes.number("weight_decay"))),
        coupled(static_cast<float>(attributes.number("coupled_weight_decay"))) {
    const double first = attributes.number("beta1"), second = attributes.number("beta2");
    beta1 = static_cast<float>(first);
    beta2 = static_cast<float>(second);
    rest1 = static_cast<float>(1 - first);
    rest2 = static_cast<float>(1 - second);
    log_beta1 = static_cast<float>(std::log(first));
    log_beta2 = static_cast<float>(std::log(second));
  }

  // 1 - beta^t is -expm1(t log(beta)): exact to float's precision if beta^t is close to 1.
  __device__ LambConstants at(float scale) const {
    const auto t = static_cast<float>(*step);
    return {.scale = scale,
            .beta1 = beta1,
            .beta2 = beta2,
            .epsilon = epsilon,
            .rest1 = rest1,
            .rest2 = rest2,
            .correction1 = 1 / -expm1f(t * log_beta1),
            .correction2 = 1 / sqrtf(-expm1f(t * log_beta2)),
            .decay = decay,
            .coupled = coupled};
  }
  __device__ float rate_of(float rate, cuda::TrustSums sums) const {
    if (!(sums.first > 0) || !(sums.second > 0)) return rate;
    return rate * sqrtf(sums.first) / sqrtf(sums.second);
  }
};

}  // namespace

FLEET_KERNEL(cuda, lamb) {
  def.layouts = cuda::trust_layouts;
  def.create = [](KernelContext& context) {
    const int64_t* step = context.inputs[kUpdateOtherInputs].as<const int64_t>();
    return cuda::trust_kernel(context, LambRule(context.attributes(), step));
  };
}

}  // namespace fleet
