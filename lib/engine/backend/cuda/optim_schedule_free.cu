#include "backend/cuda/optim_update.h"
#include "optim/schedule_free_rule.h"

namespace fleet {
namespace {

__global__ void schedule_free_weight(const float* rate, const int32_t* found_inf, double beta,
                                     float* largest, float* sum, float* weight,
                                     float* average_rate) {
  if (found_inf && *found_inf != 0) return;
  weigh_rate(*rate, beta, largest, sum, weight, average_rate);
}

}  // namespace

FLEET_KERNEL(cuda, schedule_free_adamw) { cuda::define_update<ScheduleFreeRule<float, true>>(def); }
FLEET_KERNEL(cuda, schedule_free_sgd) { cuda::define_update<ScheduleFreeRule<float, false>>(def); }

FLEET_KERNEL(cuda, schedule_free_weight) {
  def.create = [](KernelContext& context) {
    const float* rate = context.inputs[0].as<const float>();
    const int32_t* found_inf = context.inputs[1].as<const int32_t>();
    float *weight = context.outputs[0].as<float>(), *average_rate = context.outputs[1].as<float>();
    float *largest = context.outputs[2].as<float>(), *sum = context.outputs[3].as<float>();
    const double beta = context.attributes().number("beta");
    return make_kernel([=](Stream& stream) {
      cuda::launch(schedule_free_weight, 1, 1, 0, cuda::stream_of(stream), rate, found_inf, beta,
                   largest, sum, weight, average_rate);
    });
  };
}

}  // namespace fleet
