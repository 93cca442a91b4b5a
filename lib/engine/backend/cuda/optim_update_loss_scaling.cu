#include "backend/cuda/types.h"
#include "exec/kernel.h"

namespace fleet {
namespace {

struct UpdateLossScalingRule {
  int64_t incr_every, decr_every;
  float incr_ratio, decr_ratio;
};

__global__ void update(UpdateLossScalingRule rule, const int32_t* found_inf, float* scaling,
                       int64_t* good, int64_t* bad) {
  if (*found_inf != 0) {
    *good = 0;
    if (++*bad == rule.decr_every) {
      const float smaller = *scaling * rule.decr_ratio;
      *scaling = smaller > 1 ? smaller : 1;
      *bad = 0;
    }
    return;
  }
  *bad = 0;
  if (++*good == rule.incr_every) {
    const float larger = *scaling * rule.incr_ratio;
    if (larger - larger == 0) *scaling = larger;  // finite
    *good = 0;
  }
}

}  // namespace

FLEET_KERNEL(cuda, update_loss_scaling) {
  def.create = [](KernelContext& context) {
    const Attributes& attributes = context.attributes();
    const UpdateLossScalingRule rule{
        .incr_every = attributes.integer("incr_every_n_steps"),
        .decr_every = attributes.integer("decr_every_n_nan_or_inf"),
        .incr_ratio = static_cast<float>(attributes.number("incr_ratio")),
        .decr_ratio = static_cast<float>(attributes.number("decr_ratio"))};
    const int32_t* found_inf = context.inputs[0].as<const int32_t>();
    float* scaling = context.outputs[0].as<float>();
    int64_t* good = context.outputs[1].as<int64_t>();
    int64_t* bad = context.outputs[2].as<int64_t>();
    return make_kernel([=](Stream& stream) {
      cuda::launch(update, 1, 1, 0, cuda::stream_of(stream), rule, found_inf, scaling, good, bad);
    });
  };
}

}  // namespace fleet
