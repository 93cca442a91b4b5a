#include <algorithm>

#include "backend/cpu/optim_update.h"
#include "optim/schedule_free_rule.h"

namespace fleet {

FLEET_KERNEL(cpu, schedule_free_adamw) { cpu::define_update<ScheduleFreeRule<double, true>>(def); }
FLEET_KERNEL(cpu, schedule_free_sgd) { cpu::define_update<ScheduleFreeRule<double, false>>(def); }

FLEET_KERNEL(cpu, schedule_free_weight) {
  def.create = [](KernelContext& context) {
    const float* rate = context.inputs[0].as<const float>();
    const int32_t* found_inf = context.inputs[1].as<const int32_t>();
    float *weight = context.outputs[0].as<float>(), *average_rate = context.outputs[1].as<float>();
    float *largest = context.outputs[2].as<float>(), *sum = context.outputs[3].as<float>();
    const double beta = context.attributes().number("beta");
    return make_kernel([=](Stream&) {
      if (found_inf && *found_inf != 0) return;
      weigh_rate(*rate, beta, largest, sum, weight, average_rate);
    });
  };
}

}  // namespace fleet
