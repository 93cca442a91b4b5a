// The formula of sigmoid_focal_loss for one logit.
#pragma once

#include <cmath>

#include "base/cpu.h"
#include "graph/op.h"

namespace fleet {

// With p = sigmoid(x), q = 1 - p and targets t in [0, 1]:
//   ce    = weight * t * -log(p) + (1 - t) * -log(q)
//   miss  = p (1 - t) + q t, that is 1 - p_t without its cancellation
//   loss  = (alpha t + (1 - alpha)(1 - t)) * miss^gamma * ce
struct FocalLoss {
  float alpha, gamma, scale, bias, threshold;

  explicit FocalLoss(const Attributes& attributes)
      : alpha(static_cast<float>(attributes.number("alpha"))),
        gamma(static_cast<float>(attributes.number("gamma"))),
        scale(static_cast<float>(attributes.number("target_scale"))),
        bias(static_cast<float>(attributes.number("target_bias"))),
        threshold(static_cast<float>(attributes.number("target_threshold"))) {}

  FLEET_INLINE float target(float given) const {
    const float t = given * scale + bias;
    if (threshold < 0) return t;
    return t > threshold ? 1.0f : 0.0f;
  }
  FLEET_INLINE float balance(float t) const {
    return alpha < 0 ? 1.0f : alpha * t + (1 - alpha) * (1 - t);
  }
  static FLEET_INLINE float cross_entropy(float x, float t, float weight) {
    const float tail = log1pf(expf(-fabsf(x)));
    return weight * t * (fmaxf(-x, 0.0f) + tail) + (1 - t) * (fmaxf(x, 0.0f) + tail);
  }

  FLEET_INLINE float loss(float x, float given, float weight) const {
    const float t = target(given), ce = cross_entropy(x, t, weight);
    if (gamma == 0) return balance(t) * ce;
    const float small = expf(-fabsf(x)), large = 1 / (1 + small);
    const float p = x >= 0 ? large : small * large, q = x >= 0 ? small * large : large;
    return balance(t) * ce * powf(p * (1 - t) + q * t, gamma);
  }

  // The loss's derivative by x.
  FLEET_INLINE float slope(float x, float given, float weight) const {
    const float t = target(given);
    const float small = expf(-fabsf(x)), large = 1 / (1 + small);
    const float p = x >= 0 ? large : small * large, q = x >= 0 ? small * large : large;
    const float of_entropy = (1 - t) * p - weight * t * q;
    if (gamma == 0) return balance(t) * of_entropy;
    const float miss = p * (1 - t) + q * t;
    if (miss < 1e-37f) return 0;
    const float focus = powf(miss, gamma);
    const float of_focus = gamma * (focus / miss) * (1 - 2 * t) * p * q;
    return balance(t) * (of_entropy * focus + of_focus * cross_entropy(x, t, weight));
  }
};

// The formula with the weights of positive targets: one for all classes, or one for each.
struct WeightedFocalLoss {
  FocalLoss formula;
  const float* weights = nullptr;  // null: 1
  bool one = false;

  WeightedFocalLoss(const Attributes& attributes, const float* own, const Shape& shape)
      : formula(attributes), weights(own), one(own && shape[0] == 1) {}

  FLEET_INLINE float weight(int64_t c) const { return weights ? weights[one ? 0 : c] : 1.0f; }
  FLEET_INLINE float loss(float x, float target, int64_t c) const {
    return formula.loss(x, target, weight(c));
  }
  FLEET_INLINE float slope(float x, float target, int64_t c) const {
    return formula.slope(x, target, weight(c));
  }
};

}  // namespace fleet
