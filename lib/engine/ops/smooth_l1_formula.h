// The formulas of smooth_l1 and of its gradient, for one element.
#pragma once

#include <cmath>

#include "base/cpu.h"
#include "graph/op.h"

namespace fleet {

struct SmoothL1 {
  float beta;
  explicit SmoothL1(const Attributes& attributes)
      : beta(static_cast<float>(attributes.number("beta"))) {}
  FLEET_INLINE float operator()(float x) const {
    const float size = fabsf(x);
    return size < beta ? 0.5f * size * size / beta : size - 0.5f * beta;
  }
};
struct SmoothL1Grad {
  float beta;
  explicit SmoothL1Grad(const Attributes& attributes)
      : beta(static_cast<float>(attributes.number("beta"))) {}
  FLEET_INLINE float operator()(float x, float dy) const {
    const float sign = x > 0 ? 1.0f : (x < 0 ? -1.0f : 0.0f);
    return fabsf(x) < beta ? dy * x / beta : dy * sign;
  }
};

}  // namespace fleet
