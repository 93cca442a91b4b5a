#include "backend/cpu/labels.h"
#include "backend/cpu/simd_math.h"

namespace fleet {
namespace {

struct RowLoss {
  float largest, sum;   // of exp(x - largest)
  float shifted_total;  // sum of (x - largest): for label smoothing
};

FLEET_SIMD RowLoss row_loss(const float* x, int64_t classes) {
  const float largest = cpu::row_max(x, classes);
  float sum = 0, total = 0;
#pragma omp simd reduction(+ : sum, total)
  for (int64_t c = 0; c < classes; ++c) {
    const float shifted = x[c] - largest;
    sum += cpu::fast_exp(shifted);
    total += shifted;
  }
  return {largest, sum, total};
}

FLEET_SIMD void row_softmax(const float* x, float* y, int64_t classes, float largest, float sum) {
  const float factor = 1 / sum;
#pragma omp simd
  for (int64_t c = 0; c < classes; ++c) y[c] = cpu::fast_exp(x[c] - largest) * factor;
}

// dx = (softmax(x) - target) * slope, where target is `rest` for each class except the label's.
FLEET_SIMD void row_gradient(const float* x, float* dx, int64_t classes, float slope, float rest) {
  const float largest = cpu::row_max(x, classes);
  const float factor = slope / cpu::row_exp_sum(x, classes, largest);
  const float constant = slope * rest;
#pragma omp simd
  for (int64_t c = 0; c < classes; ++c) {
    dx[c] = cpu::fast_exp(x[c] - largest) * factor - constant;
  }
}

std::unique_ptr<Kernel> make_loss(KernelContext& context) {
  const cpu::Labels labels(context, context.inputs[0], context.inputs[1]);
  const float* logits = context.inputs[0].as<float>();
  float* loss = context.outputs[0].as<float>();
  float* softmax = context.outputs[1].as<float>();
  const double smoothing = context.attributes().number("label_smoothing");
  return make_kernel([=](Stream&) {
    labels.check("softmax_with_cross_entropy");
    const int64_t classes = labels.classes;
    const bool parallel = labels.samples * classes >= cpu::kParallelElements;
#pragma omp parallel for if (parallel)
    for (int64_t n = 0; n < labels.samples; ++n) {
      const float* x = logits + n * classes;
      const RowLoss row = row_loss(x, classes);
      if (softmax) row_softmax(x, softmax + n * classes, classes, row.largest, row.sum);
      if (labels.ignored(n)) {
        loss[n] = 0;
        continue;
      }
      const double norm = std::log(static_cast<double>(row.sum));
      double value = norm - (x[labels.label[n]] - row.largest);
      if (smoothing > 0) {
        const double uniform = norm - row.shifted_total / static_cast<double>(classes);
        value = (1 - smoothing) * value + smoothing * uniform;
      }
      loss[n] = static_cast<float>(value);
    }
  });
}

std::unique_ptr<Kernel> make_gradient(KernelContext& context) {
  const cpu::Labels labels(context, context.inputs[0], context.inputs[1]);
  const float* logits = context.inputs[0].as<float>();
  const float* dloss = context.inputs[2].as<float>();
  float* dlogits = context.outputs[0].as<float>();
  const double smoothing = context.attributes().number("label_smoothing");
  const float on_label = static_cast<float>(1 - smoothing);
  const float rest = static_cast<float>(smoothing / static_cast<double>(labels.classes));
  return make_kernel([=](Stream&) {
    const int64_t classes = labels.classes;
    const bool parallel = labels.samples * classes >= cpu::kParallelElements;
#pragma omp parallel for if (parallel)
    for (int64_t n = 0; n < labels.samples; ++n) {
      float* dx = dlogits + n * classes;
      if (labels.ignored(n)) {
        std::fill_n(dx, classes, 0.0f);
        continue;
      }
      row_gradient(logits + n * classes, dx, classes, dloss[n], rest);
      dx[labels.label[n]] -= dloss[n] * on_label;
    }
  });
}

}  // namespace

FLEET_KERNEL(cpu, softmax_with_cross_entropy) { def.create = make_loss; }
FLEET_KERNEL(cpu, softmax_with_cross_entropy_grad) { def.create = make_gradient; }

}  // namespace fleet
