#include "backend/cuda/optim_update.h"

namespace fleet {
namespace {

struct SgdConstants {
  float scale, rate, decay;
  __device__ void update(float& parameter, float gradient) const {
    parameter -= rate * (gradient * scale + decay * parameter);
  }
};

struct SgdRule {
  static constexpr int kStates = 0;
  float decay;
  __device__ SgdConstants at(float rate, float scale) const { return {scale, rate, decay}; }
};

}  // namespace

FLEET_KERNEL(cuda, sgd) {
  def.layouts = cuda::update_layouts;
  def.create = [](KernelContext& context) {
    return cuda::update_kernel(
        context, SgdRule{static_cast<float>(context.attributes().number("weight_decay"))});
  };
}

}  // namespace fleet
