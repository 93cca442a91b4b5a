// The formula is in optim/rmsprop.cc.
#pragma once

#include <cmath>

#include "optim/update_rule.h"

namespace fleet {

template <bool centered, bool with_momentum>
struct RmspropConstants {
  float scale, rate, decay;
  float alpha, rest;  // rest: 1 - alpha, rounded once
  float epsilon, momentum;
  // others: mean and momentum, if they exist.
  template <typename... Others>
  FLEET_INLINE void update(float& parameter, float gradient, float& square,
                           Others&... others) const {
    // An array has at least one element.
    [[maybe_unused]] float* const other[] = {&others..., nullptr};
    const float g = gradient * scale + decay * parameter;
    square = alpha * square + rest * g * g;
    float variance = square;
    if constexpr (centered) {
      float& mean = *other[0];
      mean = alpha * mean + rest * g;
      variance = square - mean * mean;
      variance = variance < 0 ? 0 : variance;  // keeps NaN
    }
    float d = g / (std::sqrt(variance) + epsilon);
    if constexpr (with_momentum) {
      float& velocity = *other[centered];
      d = momentum * velocity + d;
      velocity = d;
    }
    parameter -= rate * d;
  }
};

template <bool centered, bool with_momentum>
struct RmspropRule {
  static constexpr int kStates = 1 + centered + with_momentum;
  Decay<float> square;
  float decay, epsilon, momentum;
  explicit RmspropRule(const Attributes& attributes)
      : square(attributes.number("alpha")),
        decay(static_cast<float>(attributes.number("weight_decay"))),
        epsilon(static_cast<float>(attributes.number("epsilon"))),
        momentum(static_cast<float>(attributes.number("momentum"))) {}
  FLEET_INLINE RmspropConstants<centered, with_momentum> at(float rate, float scale) const {
    return {scale, rate, decay, square.beta, square.rest, epsilon, momentum};
  }
};

}  // namespace fleet
