// The formula is in optim/adagrad.cc.
#pragma once

#include <cmath>

#include "optim/update_rule.h"

namespace fleet {

struct AdagradConstants {
  float scale, rate, decay, epsilon;
  FLEET_INLINE void update(float& parameter, float gradient, float& sum) const {
    const float g = gradient * scale + decay * parameter;
    sum += g * g;
    parameter -= rate * (g / (std::sqrt(sum) + epsilon));
  }
};

template <typename Real>
struct AdagradRule {
  static constexpr int kStates = 1;
  const int64_t* step;
  float decay, epsilon;
  Real lr_decay;
  AdagradRule(const Attributes& attributes, const int64_t* step_of)
      : step(step_of),
        decay(static_cast<float>(attributes.number("weight_decay"))),
        epsilon(static_cast<float>(attributes.number("epsilon"))),
        lr_decay(static_cast<Real>(attributes.number("lr_decay"))) {}
  FLEET_INLINE AdagradConstants at(Real rate, float scale) const {
    const Real slower = 1 + static_cast<Real>(*step - 1) * lr_decay;
    return {scale, static_cast<float>(rate / slower), decay, epsilon};
  }
};

}  // namespace fleet
