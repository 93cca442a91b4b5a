#include <algorithm>
#include <cmath>

#include "backend/cpu/elementwise.h"

namespace fleet {

FLEET_KERNEL(cpu, sigmoid_cross_entropy) {
  def.create = [](KernelContext& context) {
    const float* logits = context.inputs[0].as<float>();
    const float* target = context.inputs[1].as<float>();
    float* loss = context.outputs[0].as<float>();
    const int64_t samples = context.inputs[0].shape[0], classes = context.inputs[0].shape[1];
    return make_kernel([=](Stream&) {
      const bool parallel = samples * classes >= cpu::kParallelElements;
#pragma omp parallel for if (parallel)
      for (int64_t n = 0; n < samples; ++n) {
        double sum = 0;
        for (int64_t c = 0; c < classes; ++c) {
          const float x = logits[n * classes + c], t = target[n * classes + c];
          sum += std::fmax(x, 0.0f) - x * t + std::log1p(std::exp(-std::fabs(x)));
        }
        loss[n] = static_cast<float>(sum / static_cast<double>(classes));
      }
    });
  };
}

FLEET_KERNEL(cpu, sigmoid_cross_entropy_grad) {
  def.create = [](KernelContext& context) {
    const float* logits = context.inputs[0].as<float>();
    const float* target = context.inputs[1].as<float>();
    const float* dloss = context.inputs[2].as<float>();
    float* gradient = context.outputs[0].as<float>();
    const int64_t samples = context.inputs[0].shape[0], classes = context.inputs[0].shape[1];
    return make_kernel([=](Stream&) {
      const bool parallel = samples * classes >= cpu::kParallelElements;
#pragma omp parallel for if (parallel)
      for (int64_t n = 0; n < samples; ++n) {
        const float share = dloss[n] / static_cast<float>(classes);
        for (int64_t i = n * classes; i < (n + 1) * classes; ++i) {
          gradient[i] = share * (1 / (1 + std::exp(-logits[i])) - target[i]);
        }
      }
    });
  };
}

}  // namespace fleet
