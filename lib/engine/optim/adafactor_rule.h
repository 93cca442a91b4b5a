// The numbers of the rule in optim/adafactor.cc.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/cpu.h"
#include "graph/op.h"

namespace fleet {

// Positions among the inputs and outputs of adafactor_step.
inline constexpr int kAdafactorGradient = 0, kAdafactorScale = 1, kAdafactorFoundInf = 2,
                     kAdafactorStep = 3, kAdafactorRate = 4, kAdafactorSquares = 5,
                     kAdafactorRow = 6, kAdafactorColumn = 7;

// Real: double on a CPU, float on a GPU.
template <typename Real>
struct AdafactorRule {
  Real beta2_decay, epsilon1, epsilon2, clip_threshold;
  bool relative_step;

  explicit AdafactorRule(const Attributes& attributes)
      : beta2_decay(static_cast<Real>(attributes.number("beta2_decay"))),
        epsilon1(static_cast<Real>(attributes.number("epsilon1"))),
        epsilon2(static_cast<Real>(attributes.number("epsilon2"))),
        clip_threshold(static_cast<Real>(attributes.number("clip_threshold"))),
        relative_step(attributes.boolean("relative_step")) {}

  // 1 - beta2_t.
  FLEET_INLINE Real weight(int64_t step) const {
    return std::pow(static_cast<Real>(step), beta2_decay);
  }
  // As torch.lerp: exact at both ends.
  FLEET_INLINE static float lerp(float from, float to, float weight) {
    return weight < 0.5f ? from + weight * (to - from) : to - (to - from) * (1 - weight);
  }
  // The element of the step before it is scaled; variance: its estimate.
  FLEET_INLINE float direction(float gradient, float variance) const {
    const auto least = static_cast<float>(epsilon1 * epsilon1);
    return gradient / std::sqrt(variance > least ? variance : least);
  }
  // The factor of the directions. squares: the sum of their squares; parameter_squares: that of the
  // parameter's, null: steps are not in parts of the parameter.
  FLEET_INLINE float factor(Real squares, Real elements, const float* parameter_squares, Real rate,
                            int64_t step) const {
    const Real size = std::sqrt(squares / elements) / clip_threshold;
    Real factor = size > 1 ? 1 / size : 1;
    if (parameter_squares) {
      const Real root = std::sqrt(static_cast<Real>(*parameter_squares) / elements);
      factor *= root > epsilon2 ? root : epsilon2;
    }
    const Real most = rate * std::sqrt(static_cast<Real>(step));
    if (relative_step && most > 1) factor /= most;
    return static_cast<float>(factor);
  }
};

}  // namespace fleet
