// The formula is in optim/momentum.cc.
#pragma once

#include "optim/update_rule.h"

namespace fleet {

template <bool nesterov>
struct MomentumConstants {
  float scale, rate, momentum, decay;
  FLEET_INLINE void update(float& parameter, float gradient, float& velocity) const {
    const float d = gradient * scale + decay * parameter;
    velocity = momentum * velocity + d;
    parameter -= rate * (nesterov ? d + momentum * velocity : velocity);
  }
};

template <bool nesterov>
struct MomentumRule {
  static constexpr int kStates = 1;
  float momentum, decay;
  explicit MomentumRule(const Attributes& attributes)
      : momentum(static_cast<float>(attributes.number("momentum"))),
        decay(static_cast<float>(attributes.number("weight_decay"))) {}
  FLEET_INLINE MomentumConstants<nesterov> at(float rate, float scale) const {
    return {scale, rate, momentum, decay};
  }
};

}  // namespace fleet
