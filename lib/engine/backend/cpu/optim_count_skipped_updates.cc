#include <cmath>

#include "exec/kernel.h"

namespace fleet {

FLEET_KERNEL(cpu, count_skipped_updates) {
  def.create = [](KernelContext& context) {
    int64_t* skipped = context.outputs[0].as<int64_t>();
    const int32_t* found_inf = context.inputs[1].as<int32_t>();
    const float *loss = context.inputs[2].as<float>(), *scale = context.inputs[3].as<float>();
    return make_kernel([=](Stream&) {
      const bool hopeless = !scale || *scale <= 1 || !std::isfinite(*loss);
      *skipped = *found_inf != 0 && hopeless ? *skipped + 1 : 0;
    });
  };
}

}  // namespace fleet
