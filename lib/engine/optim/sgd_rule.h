// The formula is in optim/sgd.cc.
#pragma once

#include "optim/update_rule.h"

namespace fleet {

struct SgdConstants {
  float scale, rate, decay;
  FLEET_INLINE void update(float& parameter, float gradient) const {
    parameter -= rate * (gradient * scale + decay * parameter);
  }
};

struct SgdRule {
  static constexpr int kStates = 0;
  float decay;
  explicit SgdRule(const Attributes& attributes)
      : decay(static_cast<float>(attributes.number("weight_decay"))) {}
  FLEET_INLINE SgdConstants at(float rate, float scale) const { return {scale, rate, decay}; }
};

}  // namespace fleet
