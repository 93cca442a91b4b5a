// Update rules whose rate depends on two sums over the whole parameter (LAMB, LARS), as those of
// optim/update_rule.h. measure() returns an element's terms of the sums, and may change the states;
// rate_of(rate, sums) is the `rate` of update(). Without needs_sums() that is the learning rate.
#pragma once

#include "optim/update_rule.h"

namespace fleet {

// An element's terms of the two sums.
struct TrustTerms {
  float first, second;
};

struct LambConstants {
  float scale;
  float beta1, beta2, epsilon;
  float rest1, rest2;              // 1 - beta1, 1 - beta2
  float correction1, correction2;  // 1 / (1 - beta1^t), 1 / sqrt(1 - beta2^t)
  float decay, coupled;
  FLEET_INLINE float direction(float parameter, float moment1, float moment2) const {
    return moment1 * correction1 / (std::sqrt(moment2) * correction2 + epsilon) + decay * parameter;
  }
  FLEET_INLINE TrustTerms measure(float parameter, float gradient, float& moment1,
                                  float& moment2) const {
    const float g = gradient * scale + coupled * parameter;
    moment1 = beta1 * moment1 + rest1 * g;
    moment2 = beta2 * moment2 + rest2 * g * g;
    const float r = direction(parameter, moment1, moment2);
    return {parameter * parameter, r * r};
  }
  FLEET_INLINE void update(float& parameter, float, float rate, float moment1,
                           float moment2) const {
    parameter -= rate * direction(parameter, moment1, moment2);
  }
};

template <typename Real>
struct LambRule {
  static constexpr int kStates = 2;
  const int64_t* step;
  Decay<Real> first, second;
  float epsilon, decay, coupled;
  LambRule(const Attributes& attributes, const int64_t* step_of)
      : step(step_of),
        first(attributes.number("beta1")),
        second(attributes.number("beta2")),
        epsilon(static_cast<float>(attributes.number("epsilon"))),
        decay(static_cast<float>(attributes.number("weight_decay"))),
        coupled(static_cast<float>(attributes.number("coupled_weight_decay"))) {}
  bool needs_sums() const { return true; }
  FLEET_INLINE LambConstants at(float scale) const {
    const auto t = static_cast<Real>(*step);
    return {.scale = scale,
            .beta1 = static_cast<float>(first.beta),
            .beta2 = static_cast<float>(second.beta),
            .epsilon = epsilon,
            .rest1 = static_cast<float>(first.rest),
            .rest2 = static_cast<float>(second.rest),
            .correction1 = static_cast<float>(1 / first.correction(t)),
            .correction2 = static_cast<float>(1 / std::sqrt(second.correction(t))),
            .decay = decay,
            .coupled = coupled};
  }
  FLEET_INLINE float rate_of(Real rate, Real first_sum, Real second_sum) const {
    const Real p = std::sqrt(first_sum), r = std::sqrt(second_sum);
    return static_cast<float>(p > 0 && r > 0 ? rate * (p / r) : rate);
  }
};

struct LarsConstants {
  float scale, momentum, decay, coupled;
  FLEET_INLINE float gradient_of(float parameter, float gradient) const {
    return gradient * scale + coupled * parameter;
  }
  FLEET_INLINE TrustTerms measure(float parameter, float gradient, float) const {
    const float g = gradient_of(parameter, gradient);
    return {parameter * parameter, g * g};
  }
  FLEET_INLINE void update(float& parameter, float gradient, float rate, float& velocity) const {
    const float g = gradient_of(parameter, gradient);
    velocity = momentum * velocity + rate * (g + decay * parameter);
    parameter -= velocity;
  }
};

template <typename Real>
struct LarsRule {
  static constexpr int kStates = 1;
  float momentum, coupled;
  Real coeff, decay, epsilon;
  explicit LarsRule(const Attributes& attributes)
      : momentum(static_cast<float>(attributes.number("momentum"))),
        coupled(static_cast<float>(attributes.number("coupled_weight_decay"))),
        coeff(static_cast<Real>(attributes.number("lars_coeff"))),
        decay(static_cast<Real>(attributes.number("weight_decay"))),
        epsilon(static_cast<Real>(attributes.number("epsilon"))) {}
  bool needs_sums() const { return decay > 0; }
  FLEET_INLINE LarsConstants at(float scale) const {
    return {scale, momentum, static_cast<float>(decay), coupled};
  }
  FLEET_INLINE float rate_of(Real rate, Real first_sum, Real second_sum) const {
    const Real p = std::sqrt(first_sum), g = std::sqrt(second_sum);
    const bool scaled = decay > 0 && p > 0 && g > 0;
    return static_cast<float>(scaled ? rate * coeff * p / (g + decay * p + epsilon) : rate);
  }
};

}  // namespace fleet
