// The formula is in optim/lion.cc.
#pragma once

#include "optim/update_rule.h"

namespace fleet {

struct LionConstants {
  float scale, rate;
  float keep;  // factor of the parameter after decay
  float beta1, rest1, beta2, rest2;
  FLEET_INLINE void update(float& parameter, float gradient, float& momentum) const {
    const float g = gradient * scale;
    const float direction = beta1 * momentum + rest1 * g;
    const float sign = (direction > 0 ? 1.f : 0.f) - (direction < 0 ? 1.f : 0.f);
    parameter = parameter * keep - rate * sign;
    momentum = beta2 * momentum + rest2 * g;
  }
};

template <typename Real>
struct LionRule {
  static constexpr int kStates = 1;
  Decay<Real> first, second;
  Real decay;
  explicit LionRule(const Attributes& attributes)
      : first(attributes.number("beta1")),
        second(attributes.number("beta2")),
        decay(static_cast<Real>(attributes.number("weight_decay"))) {}
  FLEET_INLINE LionConstants at(Real rate, float scale) const {
    return {.scale = scale,
            .rate = static_cast<float>(rate),
            .keep = static_cast<float>(1 - rate * decay),
            .beta1 = static_cast<float>(first.beta),
            .rest1 = static_cast<float>(first.rest),
            .beta2 = static_cast<float>(second.beta),
            .rest2 = static_cast<float>(second.rest)};
  }
};

}  // namespace fleet
