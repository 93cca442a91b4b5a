#include <cmath>

#include "backend/cuda/optim_update.h"

namespace fleet {
namespace {

struct AdamConstants {
  float scale;
  float beta1, beta2, epsilon;
  float rest1, rest2;     // 1 - beta1, 1 - beta2, rounded once
  float coupled_decay;    // added to the gradient
  float keep;             // factor of the parameter after decoupled decay
  float rate;             // learning rate / (1 - beta1^t)
  float root_correction;  // 1 / sqrt(1 - beta2^t)
  // max_moment2: with amsgrad, the largest moment2 so far.
  template <typename... Max>
  __device__ void update(float& parameter, float gradient, float& moment1, float& moment2,
                         Max&... max_moment2) const {
    const float g = gradient * scale + coupled_decay * parameter;
    moment1 = beta1 * moment1 + rest1 * g;
    moment2 = beta2 * moment2 + rest2 * g * g;
    float bound = moment2;
    ((bound = max_moment2 = max_moment2 > moment2 ? max_moment2 : moment2), ...);  // keeps NaN
    const float step = moment1 / (sqrtf(bound) * root_correction + epsilon);
    parameter = parameter * keep - rate * step;
  }
};

template <bool amsgrad>
struct AdamRule {
  static constexpr int kStates = amsgrad ? 3 : 2;
  const int64_t* step;
  float beta1, beta2, rest1, rest2, epsilon, decay;
  float log_beta1, log_beta2;
  bool decoupled;

  AdamRule(const Attributes& attributes, const int64_t* step_of)
      : step(step_of),
        epsilon(static_cast<float>(attributes.number("epsilon"))),
        decay(static_cast<float>(attributes.number("weight_decay"))),
        decoupled(attributes.boolean("decoupled")) {
    const double first = attributes.number("beta1"), second = attributes.number("beta2");
    beta1 = static_cast<float>(first);
    beta2 = static_cast<float>(second);
    rest1 = static_cast<float>(1 - first);
    rest2 = static_cast<float>(1 - second);
    log_beta1 = static_cast<float>(std::log(first));
    log_beta2 = static_cast<float>(std::log(second));
  }

  // 1 - beta^t is -expm1(t log(beta)): exact to float's precision if beta^t is close to 1.
  __device__ AdamConstants at(float learning_rate, float scale) const {
    const auto t = static_cast<float>(*step);
    return {.scale = scale,
            .beta1 = beta1,
            .beta2 = beta2,
            .epsilon = epsilon,
            .rest1 = rest1,
            .rest2 = rest2,
            .coupled_decay = decoupled ? 0 : decay,
            .keep = decoupled ? 1 - learning_rate * decay : 1,
            .rate = learning_rate / -expm1f(t * log_beta1),
            .root_correction = 1 / sqrtf(-expm1f(t * log_beta2))};
  }
};

template <bool amsgrad>
void define_adam(KernelDef& def) {
  def.layouts = cuda::update_layouts;
  def.create = [](KernelContext& context) {
    const int64_t* step = context.inputs[kUpdateOtherInputs].as<const int64_t>();
    return cuda::update_kernel(context, AdamRule<amsgrad>(context.attributes(), step));
  };
}

}  // namespace

FLEET_KERNEL(cuda, adam) { define_adam<false>(def); }
FLEET_KERNEL(cuda, adam_amsgrad) { define_adam<true>(def); }

}  // namespace fleet
