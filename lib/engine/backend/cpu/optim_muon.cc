#include "backend/cpu/elementwise.h"
#include "optim/muon_rule.h"

namespace fleet {
namespace {

FLEET_SIMD void update_range(MuonMomentum rule, const float* gradient, float scale, float* state,
                             float* step, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) step[i] = rule.update(gradient[i] * scale, state[i]);
}

}  // namespace

FLEET_KERNEL(cpu, muon_momentum) {
  def.create = [](KernelContext& context) {
    const float* gradient = context.inputs[0].as<const float>();
    const float* scale = context.inputs[1].as<const float>();
    const int32_t* found_inf = context.inputs[2].as<const int32_t>();
    float *step = context.outputs[0].as<float>(), *state = context.outputs[1].as<float>();
    const int64_t count = context.inputs[0].shape.elements();
    return make_kernel([=, rule = MuonMomentum(context.attributes())](Stream&) {
      if (found_inf && *found_inf != 0) return;
      const float factor = scale ? *scale : 1;
      cpu::parallel_ranges(count, [=](int64_t begin, int64_t end) {
        update_range(rule, gradient + begin, factor, state + begin, step + begin, end - begin);
      });
    });
  };
}

}  // namespace fleet
