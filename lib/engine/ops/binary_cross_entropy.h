// The formula of sigmoid_cross_entropy for one logit.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/cpu.h"

namespace fleet {

struct BinaryCrossEntropy {
  FLEET_INLINE float loss(float x, float target, int64_t) const {
    return fmaxf(x, 0.0f) - x * target + log1pf(expf(-fabsf(x)));
  }
  // The loss's derivative by x.
  FLEET_INLINE float slope(float x, float target, int64_t) const {
    return 1 / (1 + expf(-x)) - target;
  }
};

}  // namespace fleet
