// The formula is in optim/adam.cc.
#pragma once

#include <cmath>

#include "optim/update_rule.h"

namespace fleet {

struct AdamConstants {
  float scale;
  float beta1, beta2, epsilon;
  float rest1, rest2;     // 1 - beta1, 1 - beta2
  float coupled_decay;    // added to the gradient
  float keep;             // factor of the parameter after decoupled decay
  float rate;             // learning rate / (1 - beta1^t)
  float root_correction;  // 1 / sqrt(1 - beta2^t)
  // max_moment2: with amsgrad, the largest moment2 so far.
  template <typename... Max>
  FLEET_INLINE void update(float& parameter, float gradient, float& moment1, float& moment2,
                           Max&... max_moment2) const {
    const float g = gradient * scale + coupled_decay * parameter;
    moment1 = beta1 * moment1 + rest1 * g;
    moment2 = beta2 * moment2 + rest2 * g * g;
    float bound = moment2;
    ((bound = max_moment2 = max_moment2 > moment2 ? max_moment2 : moment2), ...);  // keeps NaN
    const float step = moment1 / (std::sqrt(bound) * root_correction + epsilon);
    parameter = parameter * keep - rate * step;
  }
};

template <typename Real, bool amsgrad>
struct AdamRule {
  static constexpr int kStates = amsgrad ? 3 : 2;
  const int64_t* step;
  Decay<Real> first, second;
  float epsilon;
  Real decay;
  bool decoupled;
  AdamRule(const Attributes& attributes, const int64_t* step_of)
      : step(step_of),
        first(attributes.number("beta1")),
        second(attributes.number("beta2")),
        epsilon(static_cast<float>(attributes.number("epsilon"))),
        decay(static_cast<Real>(attributes.number("weight_decay"))),
        decoupled(attributes.boolean("decoupled")) {}
  FLEET_INLINE AdamConstants at(Real rate, float scale) const {
    const auto t = static_cast<Real>(*step);
    return {.scale = scale,
            .beta1 = static_cast<float>(first.beta),
            .beta2 = static_cast<float>(second.beta),
            .epsilon = epsilon,
            .rest1 = static_cast<float>(first.rest),
            .rest2 = static_cast<float>(second.rest),
            .coupled_decay = static_cast<float>(decoupled ? 0 : decay),
            .keep = static_cast<float>(decoupled ? 1 - rate * decay : 1),
            .rate = static_cast<float>(rate / first.correction(t)),
            .root_correction = static_cast<float>(1 / std::sqrt(second.correction(t)))};
  }
};

}  // namespace fleet
