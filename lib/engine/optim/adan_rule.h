// The formula is in optim/adan.cc.
#pragma once

#include <cmath>

#include "optim/update_rule.h"

namespace fleet {

struct AdanConstants {
  float scale;
  float beta1, beta2, beta3, epsilon;
  float rest1, rest2, rest3;    // 1 - beta
  float rate, difference_rate;  // lr / (1 - beta1^t), lr * beta2 / (1 - beta2^t)
  float root_correction;        // 1 / sqrt(1 - beta3^t)
  float keep, shrink;           // factors of the parameter before and after the step
  float differs;                // 0 for the first update, which has no previous gradient; else 1
  FLEET_INLINE void update(float& parameter, float gradient, float& moment, float& difference,
                           float& square, float& previous) const {
    const float g = gradient * scale;
    const float d = differs * (g - previous);
    const float ahead = g + beta2 * d;
    moment = beta1 * moment + rest1 * g;
    difference = beta2 * difference + rest2 * d;
    square = beta3 * square + rest3 * ahead * ahead;
    previous = g;
    const float step = (rate * moment + difference_rate * difference) /
                       (std::sqrt(square) * root_correction + epsilon);
    parameter = (parameter * keep - step) * shrink;
  }
};

template <typename Real>
struct AdanRule {
  static constexpr int kStates = 4;
  const int64_t* step;
  Decay<Real> first, second, third;
  float epsilon;
  Real decay;
  bool no_prox;
  AdanRule(const Attributes& attributes, const int64_t* step_of)
      : step(step_of),
        first(attributes.number("beta1")),
        second(attributes.number("beta2")),
        third(attributes.number("beta3")),
        epsilon(static_cast<float>(attributes.number("epsilon"))),
        decay(static_cast<Real>(attributes.number("weight_decay"))),
        no_prox(attributes.boolean("no_prox")) {}
  FLEET_INLINE AdanConstants at(Real rate, float scale) const {
    const auto t = static_cast<Real>(*step);
    return {.scale = scale,
            .beta1 = static_cast<float>(first.beta),
            .beta2 = static_cast<float>(second.beta),
            .beta3 = static_cast<float>(third.beta),
            .epsilon = epsilon,
            .rest1 = static_cast<float>(first.rest),
            .rest2 = static_cast<float>(second.rest),
            .rest3 = static_cast<float>(third.rest),
            .rate = static_cast<float>(rate / first.correction(t)),
            .difference_rate = static_cast<float>(rate * second.beta / second.correction(t)),
            .root_correction = static_cast<float>(1 / std::sqrt(third.correction(t))),
            .keep = static_cast<float>(no_prox ? 1 - rate * decay : 1),
            .shrink = static_cast<float>(no_prox ? 1 : 1 / (1 + rate * decay)),
            .differs = *step > 1 ? 1.f : 0.f};
  }
};

}  // namespace fleet
