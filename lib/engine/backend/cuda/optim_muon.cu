#include "backend/cuda/types.h"
#include "exec/kernel.h"
#include "optim/muon_rule.h"

namespace fleet {
namespace {

__global__ void muon_momentum(MuonMomentum rule, const float* gradient, const float* scale,
                              const int32_t* found_inf, float* state, float* step, int64_t count) {
  const int64_t i = cuda::thread_index();
  if (i >= count || (found_inf && *found_inf != 0)) return;
  step[i] = rule.update(gradient[i] * (scale ? *scale : 1.0f), state[i]);
}

}  // namespace

FLEET_KERNEL(cuda, muon_momentum) {
  def.create = [](KernelContext& context) {
    const float* gradient = context.inputs[0].as<const float>();
    const float* scale = context.inputs[1].as<const float>();
    const int32_t* found_inf = context.inputs[2].as<const int32_t>();
    float *step = context.outputs[0].as<float>(), *state = context.outputs[1].as<float>();
    const int64_t count = context.inputs[0].shape.elements();
    return make_kernel([=, rule = MuonMomentum(context.attributes())](Stream& stream) {
      cuda::launch(muon_momentum, cuda::blocks_for(count), cuda::kBlock, 0, cuda::stream_of(stream),
                   rule, gradient, scale, found_inf, state, step, count);
    });
  };
}

}  // namespace fleet
