// Losses of [samples, classes] logits with a target each, the mean over the classes of a sample.
// `formula` has loss(logit, target, class) and slope(), its derivative by the logit.
#pragma once

#include "backend/cpu/elementwise.h"

namespace fleet::cpu {

template <typename Formula>
std::unique_ptr<Kernel> class_losses(const Argument& x, const Argument& targets,
                                     const Argument& losses, Formula formula) {
  const float* logits = x.as<float>();
  const float* target = targets.as<float>();
  float* loss = losses.as<float>();
  return make_kernel([=, samples = x.shape[0], classes = x.shape[1]](Stream&) {
    const bool parallel = samples * classes >= kParallelElements;
#pragma omp parallel for if (parallel)
    for (int64_t n = 0; n < samples; ++n) {
      double sum = 0;
      for (int64_t c = 0; c < classes; ++c) {
        const int64_t i = n * classes + c;
        sum += formula.loss(logits[i], target[i], c);
      }
      loss[n] = static_cast<float>(sum / static_cast<double>(classes));
    }
  });
}

// Their gradients by the logits.
template <typename Formula>
std::unique_ptr<Kernel> class_loss_gradients(const Argument& x, const Argument& targets,
                                             const Argument& dlosses, const Argument& dx,
                                             Formula formula) {
  const float* logits = x.as<float>();
  const float* target = targets.as<float>();
  const float* dloss = dlosses.as<float>();
  float* gradient = dx.as<float>();
  return make_kernel([=, samples = x.shape[0], classes = x.shape[1]](Stream&) {
    const bool parallel = samples * classes >= kParallelElements;
#pragma omp parallel for if (parallel)
    for (int64_t n = 0; n < samples; ++n) {
      const float share = dloss[n] / static_cast<float>(classes);
      for (int64_t c = 0; c < classes; ++c) {
        const int64_t i = n * classes + c;
        gradient[i] = share * formula.slope(logits[i], target[i], c);
      }
    }
  });
}

}  // namespace fleet::cpu
