#include "backend/cpu/elementwise.h"

namespace fleet {

FLEET_KERNEL(cpu, weighted_sum) {
  def.create = [](KernelContext& context) {
    const float* value = context.inputs[0].as<float>();
    const float* weight = context.inputs[1].as<float>();
    float* sums = context.outputs[0].as<float>();
    const int64_t count = context.inputs[0].shape.elements();
    return make_kernel([=](Stream&) {
      double sum = 0, total = 0;
      for (int64_t i = 0; i < count; ++i) {
        if (weight[i] == 0) continue;
        sum += static_cast<double>(weight[i]) * value[i];
        total += weight[i];
      }
      sums[0] = static_cast<float>(sum);
      sums[1] = static_cast<float>(total);
    });
  };
}

}  // namespace fleet
