// The rule of the operation muon_momentum (optim/muon.cc) for one element.
#pragma once

#include "base/cpu.h"
#include "graph/op.h"

namespace fleet {

struct MuonMomentum {
  float momentum, rest;  // rest: 1 - momentum
  bool nesterov;

  explicit MuonMomentum(const Attributes& attributes)
      : momentum(static_cast<float>(attributes.number("momentum"))),
        rest(static_cast<float>(1 - attributes.number("momentum"))),
        nesterov(attributes.boolean("use_nesterov")) {}

  // Returns the element of the step.
  FLEET_INLINE float update(float gradient, float& state) const {
    state = momentum * state + rest * gradient;
    return nesterov ? rest * gradient + momentum * state : state;
  }
};

}  // namespace fleet
