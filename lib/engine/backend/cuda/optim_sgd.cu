#include "backend/cuda/optim_update.h"

namespace fleet {
namespace {

struct Constants {
  float scale, rate, decay;
  __device__ void update(float& parameter, float gradient) const {
    parameter -= rate * (gradient * scale + decay * parameter);
  }
};

struct Rule {
  static constexpr int kStates = 0;
  float decay;
  __device__ Constants at(float rate, float scale) const { return {scale, rate, decay}; }
};

}  // namespace

FLEET_KERNEL(cuda, sgd) {
  def.layouts = cuda::update_layouts;
  def.create = [](KernelContext& context) {
    return cuda::update_kernel(
        context, Rule{static_cast<float>(context.attributes().number("weight_decay"))});
  };
}

}  // namespace fleet
