#include <cfloat>
#include <cmath>

#include "backend/cpu/elementwise.h"
#include "backend/cpu/labels.h"

namespace fleet {
namespace {

// Clamps a vanished probability to the smallest normal number, so that the loss stays finite.
float bounded(float probability) { return probability < FLT_MIN ? FLT_MIN : probability; }

}  // namespace

FLEET_KERNEL(cpu, cross_entropy) {
  def.create = [](KernelContext& context) {
    const cpu::Labels labels(context, context.inputs[0], context.inputs[1]);
    const float* probability = context.inputs[0].as<float>();
    float* loss = context.outputs[0].as<float>();
    return make_kernel([=](Stream&) {
      labels.check("cross_entropy");
      for (int64_t n = 0; n < labels.samples; ++n) {
        const float* row = probability + n * labels.classes;
        loss[n] = labels.ignored(n) ? 0 : -std::log(bounded(row[labels.label[n]]));
      }
    });
  };
}

FLEET_KERNEL(cpu, cross_entropy_grad) {
  def.create = [](KernelContext& context) {
    const cpu::Labels labels(context, context.inputs[0], context.inputs[1]);
    const float* probability = context.inputs[0].as<float>();
    const float* dloss = context.inputs[2].as<float>();
    float* gradient = context.outputs[0].as<float>();
    return make_kernel([=](Stream&) {
      const bool parallel = labels.samples * labels.classes >= cpu::kParallelElements;
#pragma omp parallel for if (parallel)
      for (int64_t n = 0; n < labels.samples; ++n) {
        const int64_t at = n * labels.classes, label = labels.label[n];
        const bool ignored = labels.ignored(n);
        const float slope = ignored ? 0 : -dloss[n] / bounded(probability[at + label]);
        std::fill_n(gradient + at, labels.classes, 0.0f);
        if (!ignored) gradient[at + label] = slope;
      }
    });
  };
}

}  // namespace fleet
