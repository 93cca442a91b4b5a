#include "backend/cuda/optim_update.h"

namespace fleet {
namespace {

struct AdagradConstants {
  float scale, rate, decay, epsilon;
  __device__ void update(float& parameter, float gradient, float& sum) const {
    const float g = gradient * scale + decay * parameter;
    sum += g * g;
    parameter -= rate * (g / (sqrtf(sum) + epsilon));
  }
};

struct AdagradRule {
  static constexpr int kStates = 1;
  const int64_t* step;
  float decay, epsilon, lr_decay;
  __device__ AdagradConstants at(float rate, float scale) const {
    return {scale, rate / (1 + static_cast<float>(*step - 1) * lr_decay), decay, epsilon};
  }
};

}  // namespace

FLEET_KERNEL(cuda, adagrad) {
  def.layouts = cuda::update_layouts;
  def.create = [](KernelContext& context) {
    const Attributes& attributes = context.attributes();
    return cuda::update_kernel(context,
                               AdagradRule{context.inputs[kUpdateOtherInputs].as<const int64_t>(),
                                           static_cast<float>(attributes.number("weight_decay")),
                                           static_cast<float>(attributes.number("epsilon")),
                                           static_cast<float>(attributes.number("lr_decay"))});
  };
}

}  // namespace fleet
