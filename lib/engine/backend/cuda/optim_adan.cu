#include <cmath>

#include "backend/cuda/optim_update.h"

namespace fleet {
namespace {

struct AdanConstants {
  float scale;
  float beta1, beta2, beta3, epsilon;
  float rest1, rest2, rest3;    // 1 - beta, rounded once
  float rate, difference_rate;  // lr / (1 - beta1^t), lr * beta2 / (1 - beta2^t)
  float root_correction;        // 1 / sqrt(1 - beta3^t)
  float keep, shrink;           // factors of the parameter before and after the step
  float differs;                // 0 for the first update, which has no previous gradient; else 1
  __device__ void update(float& parameter, float gradient, float& moment, float& difference,
                         float& square, float& previous) const {
    const float g = gradient * scale;
    const float d = differs * (g - previous);
    const float ahead = g + beta2 * d;
    moment = beta1 * moment + rest1 * g;
    difference = beta2 * difference + rest2 * d;
    square = beta3 * square + rest3 * ahead * ahead;
    previous = g;
    const float step = (rate * moment + difference_rate * difference) /
                       (sqrtf(square) * root_correction + epsilon);
    parameter = (parameter * keep - step) * shrink;
  }
};

struct AdanRule {
  static constexpr int kStates = 4;
  const int64_t* step;
  float beta1, beta2, beta3, rest1, rest2, rest3, epsilon, decay;
  float log_beta1, log_beta2, log_beta3;
  bool no_prox;

  AdanRule(const Attributes& attributes, const int64_t* step_of)
      : step(step_of),
        epsilon(static_cast<float>(attributes.number("epsilon"))),
        decay(static_cast<float>(attributes.number("weight_decay"))),
        no_prox(attributes.boolean("no_prox")) {
    const double first = attributes.number("beta1"), second = attributes.number("beta2");
    const double third = attributes.number("beta3");
    beta1 = static_cast<float>(first);
    beta2 = static_cast<float>(second);
    beta3 = static_cast<float>(third);
    rest1 = static_cast<float>(1 - first);
    rest2 = static_cast<float>(1 - second);
    rest3 = static_cast<float>(1 - third);
    log_beta1 = static_cast<float>(std::log(first));
    log_beta2 = static_cast<float>(std::log(second));
    log_beta3 = static_cast<float>(std::log(third));
  }

  // 1 - beta^t is -expm1(t log(beta)): exact to float's precision if beta^t is close to 1.
  __device__ AdanConstants at(float learning_rate, float scale) const {
    const auto t = static_cast<float>(*step);
    return {.scale = scale,
            .beta1 = beta1,
            .beta2 = beta2,
            .beta3 = beta3,
            .epsilon = epsilon,
            .rest1 = rest1,
            .rest2 = rest2,
            .rest3 = rest3,
            .rate = learning_rate / -expm1f(t * log_beta1),
            .difference_rate = learning_rate * beta2 / -expm1f(t * log_beta2),
            .root_correction = 1 / sqrtf(-expm1f(t * log_beta3)),
            .keep = no_prox ? 1 - learning_rate * decay : 1,
            .shrink = no_prox ? 1 : 1 / (1 + learning_rate * decay),
            .differs = *step > 1 ? 1.f : 0.f};
  }
};

}  // namespace

FLEET_KERNEL(cuda, adan) {
  def.layouts = cuda::update_layouts;
  def.create = [](KernelContext& context) {
    const int64_t* step = context.inputs[kUpdateOtherInputs].as<const int64_t>();
    return cuda::update_kernel(context, AdanRule(context.attributes(), step));
  };
}

}  // namespace fleet
