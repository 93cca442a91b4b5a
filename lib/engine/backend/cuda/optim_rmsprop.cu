#include "backend/cuda/optim_update.h"

namespace fleet {
namespace {

template <bool centered, bool with_momentum>
struct RmspropConstants {
  float scale, rate, decay;
  float alpha, rest;  // rest: 1 - alpha, rounded once
  float epsilon, momentum;
  // others: mean and momentum, if they exist.
  template <typename... Others>
  __device__ void update(float& parameter, float gradient, float& square, Others&... others) const {
    [[maybe_unused]] float* const other[] = {&others...,
                                             nullptr};  // an array has at least one element
    const float g = gradient * scale + decay * parameter;
    square = alpha * square + rest * g * g;
    float variance = square;
    if constexpr (centered) {
      float& mean = *other[0];
      mean = alpha * mean + rest * g;
      variance = square - mean * mean;
      variance = variance < 0 ? 0 : variance;  // keeps NaN
    }
    float d = g / (sqrtf(variance) + epsilon);
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
  float decay, alpha, rest, epsilon, momentum;
  explicit RmspropRule(const Attributes& attributes)
      : decay(static_cast<float>(attributes.number("weight_decay"))),
        alpha(static_cast<float>(attributes.number("alpha"))),
        rest(static_cast<float>(1 - attributes.number("alpha"))),
        epsilon(static_cast<float>(attributes.number("epsilon"))),
        momentum(static_cast<float>(attributes.number("momentum"))) {}
  __device__ RmspropConstants<centered, with_momentum> at(float rate, float scale) const {
    return {scale, rate, decay, alpha, rest, epsilon, momentum};
  }
};

template <bool centered, bool with_momentum>
void define_rmsprop(KernelDef& def) {
  def.layouts = cuda::update_layouts;
  def.create = [](KernelContext& context) {
    return cuda::update_kernel(context, RmspropRule<centered, with_momentum>(context.attributes()));
  };
}

}  // namespace

FLEET_KERNEL(cuda, rmsprop) { define_rmsprop<false, false>(def); }
FLEET_KERNEL(cuda, rmsprop_momentum) { define_rmsprop<false, true>(def); }
FLEET_KERNEL(cuda, rmsprop_centered) { define_rmsprop<true, false>(def); }
FLEET_KERNEL(cuda, rmsprop_centered_momentum) { define_rmsprop<true, true>(def); }

}  // namespace fleet
