// The formula is in optim/nadam.cc.
#pragma once

#include <cmath>

#include "optim/update_rule.h"

namespace fleet {

struct NadamConstants {
  float scale;
  float beta1, beta2, epsilon;
  float rest1, rest2;              // 1 - beta1, 1 - beta2
  float coupled_decay;             // added to the gradient
  float keep;                      // factor of the parameter after decoupled decay
  float gradient_rate, mean_rate;  // learning rates of the gradient and of the first moment
  float root_correction;           // 1 / sqrt(1 - beta2^t)
  FLEET_INLINE void update(float& parameter, float gradient, float& moment1, float& moment2) const {
    const float g = gradient * scale + coupled_decay * parameter;
    moment1 = beta1 * moment1 + rest1 * g;
    moment2 = beta2 * moment2 + rest2 * g * g;
    const float root = std::sqrt(moment2) * root_correction + epsilon;
    parameter = parameter * keep - (gradient_rate * g + mean_rate * moment1) / root;
  }
};

// The momentum u_t and the product U_t of nadam.cc.
template <typename Real>
struct NadamMomentum {
  Real beta, log_beta;
  Real log_ratio;  // of 0.96^(t momentum_decay) from one t to the next
  NadamMomentum(double beta1, double momentum_decay)
      : beta(static_cast<Real>(beta1)),
        log_beta(static_cast<Real>(std::log(beta1))),
        log_ratio(static_cast<Real>(momentum_decay * std::log(0.96))) {}
  FLEET_INLINE Real at(Real t) const {
    return beta * (1 - static_cast<Real>(0.5) * std::exp(t * log_ratio));
  }
  // log(U_t): the logarithm of each factor is a series whose terms are geometric in t:
  // log(1 - q^i / 2) = -sum over k of (q^i / 2)^k / k.
  FLEET_INLINE Real log_product(Real t) const {
    Real sum = t * log_beta, half = 1;
    if (sum < -40) return sum;  // U_t no longer counts
    for (int k = 1; k <= 50; ++k) {
      half *= static_cast<Real>(0.5);
      const Real log_power = static_cast<Real>(k) * log_ratio;
      const Real powers = std::exp(log_power) * std::expm1(t * log_power) / std::expm1(log_power);
      sum -= half / static_cast<Real>(k) * powers;
    }
    return sum;
  }
};

template <typename Real>
struct NadamRule {
  static constexpr int kStates = 2;
  const int64_t* step;
  Decay<Real> first, second;
  NadamMomentum<Real> momentum;
  float epsilon;
  Real decay;
  bool decoupled;
  NadamRule(const Attributes& attributes, const int64_t* step_of)
      : step(step_of),
        first(attributes.number("beta1")),
        second(attributes.number("beta2")),
        momentum(attributes.number("beta1"), attributes.number("momentum_decay")),
        epsilon(static_cast<float>(attributes.number("epsilon"))),
        decay(static_cast<Real>(attributes.number("weight_decay"))),
        decoupled(attributes.boolean("decoupled")) {}
  FLEET_INLINE NadamConstants at(Real rate, float scale) const {
    const auto t = static_cast<Real>(*step);
    const Real now = momentum.at(t), next = momentum.at(t + 1);
    const Real log_product = momentum.log_product(t);
    return {
        .scale = scale,
        .beta1 = static_cast<float>(first.beta),
        .beta2 = static_cast<float>(second.beta),
        .epsilon = epsilon,
        .rest1 = static_cast<float>(first.rest),
        .rest2 = static_cast<float>(second.rest),
        .coupled_decay = static_cast<float>(decoupled ? 0 : decay),
        .keep = static_cast<float>(decoupled ? 1 - rate * decay : 1),
        .gradient_rate = static_cast<float>(rate * (1 - now) / -std::expm1(log_product)),
        .mean_rate = static_cast<float>(rate * next / -std::expm1(log_product + std::log(next))),
        .root_correction = static_cast<float>(1 / std::sqrt(second.correction(t)))};
  }
};

}  // namespace fleet
