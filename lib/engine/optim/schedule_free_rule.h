// The formula is in optim/schedule_free.cc.
#pragma once

#include <cmath>

#include "optim/update_rule.h"

namespace fleet {

struct ScheduleFreeConstants {
  float scale;
  float beta2, rest2, epsilon;  // rest2: 1 - beta2
  float root_correction;        // 1 / sqrt(1 - beta2^t)
  float decay;
  float rate;
  float weight;  // c
  float slope;   // lr (beta (1 - c) - 1)
  bool first;    // z begins as the parameter
  // moment2: none for sgd.
  template <typename... Moment>
  FLEET_INLINE void update(float& y, float gradient, float& z, Moment&... moment2) const {
    float step = gradient * scale;
    ((moment2 = beta2 * moment2 + rest2 * step * step), ...);
    ((step = step / (std::sqrt(moment2) * root_correction + epsilon)), ...);
    step += decay * y;
    const float from = first ? y : z;
    y = y + weight * (from - y) + slope * step;
    z = from - rate * step;
  }
};

// The weight of this update's point in the average, and the rate at which the average follows the
// parameter.
// sum: two numbers that add up to it.
FLEET_INLINE void weigh_rate(float rate, double beta, float* largest, float* sum, float* weight,
                             float* average_rate) {
  *largest = *largest > rate ? *largest : rate;
  const double square = static_cast<double>(*largest) * *largest;
  const double total = static_cast<double>(sum[0]) + sum[1] + square;
  sum[0] = static_cast<float>(total);
  sum[1] = static_cast<float>(total - sum[0]);
  const double c = total > 0 ? square / total : 0;
  *weight = static_cast<float>(c);
  *average_rate = static_cast<float>(c > 0 ? c / (1 - beta + beta * c) : 0);
}

template <typename Real, bool adam>
struct ScheduleFreeRule {
  static constexpr int kStates = adam ? 2 : 1;
  const int64_t* step;
  const float* weight_at;
  Decay<Real> second;
  Real beta;
  float epsilon, decay;
  ScheduleFreeRule(const Attributes& attributes, const int64_t* step_of, const float* weight)
      : step(step_of),
        weight_at(weight),
        second(adam ? attributes.number("beta2") : 0.5),
        beta(static_cast<Real>(attributes.number(adam ? "beta1" : "momentum"))),
        epsilon(adam ? static_cast<float>(attributes.number("epsilon")) : 0),
        decay(static_cast<float>(attributes.number("weight_decay"))) {}
  FLEET_INLINE ScheduleFreeConstants at(Real rate, float scale) const {
    const auto t = static_cast<Real>(*step);
    const auto c = static_cast<Real>(*weight_at);
    return {.scale = scale,
            .beta2 = static_cast<float>(second.beta),
            .rest2 = static_cast<float>(second.rest),
            .epsilon = epsilon,
            .root_correction = static_cast<float>(1 / std::sqrt(second.correction(t))),
            .decay = decay,
            .rate = static_cast<float>(rate),
            .weight = static_cast<float>(c),
            .slope = static_cast<float>(rate * (beta * (1 - c) - 1)),
            .first = *step == 1};
  }
};

}  // namespace fleet
