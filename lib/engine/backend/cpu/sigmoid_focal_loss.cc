#include "backend/cpu/elementwise.h"
#include "ops/focal_loss.h"

namespace fleet {
namespace {

// The weights of positive targets, by class: one for all, or one for each.
struct PositiveWeights {
  const float* values = nullptr;
  bool one = false;

  explicit PositiveWeights(const Argument& weights) {
    if (!weights.data) return;
    values = weights.as<float>();
    one = weights.shape[0] == 1;
  }
  float at(int64_t c) const { return values ? values[one ? 0 : c] : 1.0f; }
};

}  // namespace

FLEET_KERNEL(cpu, sigmoid_focal_loss) {
  def.create = [](KernelContext& context) {
    const FocalLoss formula(context.attributes());
    const PositiveWeights weights(context.inputs.size() > 2 ? context.inputs[2] : Argument());
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
          const int64_t i = n * classes + c;
          sum += formula.loss(logits[i], target[i], weights.at(c));
        }
        loss[n] = static_cast<float>(sum / static_cast<double>(classes));
      }
    });
  };
}

FLEET_KERNEL(cpu, sigmoid_focal_loss_grad) {
  def.create = [](KernelContext& context) {
    const FocalLoss formula(context.attributes());
    const PositiveWeights weights(context.inputs[2]);
    const float* logits = context.inputs[0].as<float>();
    const float* target = context.inputs[1].as<float>();
    const float* dloss = context.inputs[3].as<float>();
    float* gradient = context.outputs[0].as<float>();
    const int64_t samples = context.inputs[0].shape[0], classes = context.inputs[0].shape[1];
    return make_kernel([=](Stream&) {
      const bool parallel = samples * classes >= cpu::kParallelElements;
#pragma omp parallel for if (parallel)
      for (int64_t n = 0; n < samples; ++n) {
        const float share = dloss[n] / static_cast<float>(classes);
        for (int64_t c = 0; c < classes; ++c) {
          const int64_t i = n * classes + c;
          gradient[i] = share * formula.slope(logits[i], target[i], weights.at(c));
        }
      }
    });
  };
}

}  // namespace fleet
