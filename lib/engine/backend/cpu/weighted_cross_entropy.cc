#include "backend/cpu/labels.h"
#include "backend/cpu/simd_math.h"

namespace fleet {
namespace {

struct Row {
  float largest, sum;    // of exp(x - largest)
  float weights, drawn;  // sum of the weights, and of weight * (x - largest): for label smoothing
};

FLEET_SIMD Row scan_row(const float* x, const float* weight, int64_t classes) {
  const float largest = cpu::row_max(x, classes);
  float sum = 0, weights = 0, drawn = 0;
#pragma omp simd reduction(+ : sum, weights, drawn)
  for (int64_t c = 0; c < classes; ++c) {
    const float shifted = x[c] - largest;
    sum += cpu::fast_exp(shifted);
    weights += weight[c];
    drawn += weight[c] * shifted;
  }
  return {largest, sum, weights, drawn};
}

// dx = softmax(x) * slope - weight * rest
FLEET_SIMD void row_gradient(const float* x, const float* weight, float* dx, int64_t classes,
                             const Row& row, float slope, float rest) {
  const float factor = slope / row.sum;
#pragma omp simd
  for (int64_t c = 0; c < classes; ++c) {
    dx[c] = cpu::fast_exp(x[c] - row.largest) * factor - weight[c] * rest;
  }
}

std::unique_ptr<Kernel> make_loss(KernelContext& context) {
  const cpu::Labels labels(context, context.inputs[0], context.inputs[1]);
  const float* logits = context.inputs[0].as<float>();
  const float* weights = context.inputs[2].as<float>();
  float* loss = context.outputs[0].as<float>();
  float* own_weight = context.outputs[1].as<float>();
  const double smoothing = context.attributes().number("label_smoothing");
  return make_kernel([=](Stream&) {
    labels.check("weighted_cross_entropy");
    const int64_t classes = labels.classes;
    const bool parallel = labels.samples * classes >= cpu::kParallelElements;
#pragma omp parallel for if (parallel)
    for (int64_t n = 0; n < labels.samples; ++n) {
      if (labels.ignored(n)) {
        loss[n] = own_weight[n] = 0;
        continue;
      }
      const float* x = logits + n * classes;
      const int64_t label = labels.label[n];
      const Row row = scan_row(x, weights, classes);
      const double norm = std::log(static_cast<double>(row.sum));
      const double weight = weights[label];
      double value = weight * (norm - (x[label] - row.largest));
      if (smoothing > 0) {
        const double uniform = (row.weights * norm - row.drawn) / static_cast<double>(classes);
        value = (1 - smoothing) * value + smoothing * uniform;
      }
      loss[n] = static_cast<float>(value);
      own_weight[n] = weights[label];
    }
  });
}

std::unique_ptr<Kernel> make_gradient(KernelContext& context) {
  const cpu::Labels labels(context, context.inputs[0], context.inputs[1]);
  const float* logits = context.inputs[0].as<float>();
  const float* weights = context.inputs[2].as<float>();
  const float* dloss = context.inputs[3].as<float>();
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
      const float* x = logits + n * classes;
      const Row row = scan_row(x, weights, classes);
      const float slope = dloss[n], target = on_label * weights[labels.label[n]];
      row_gradient(x, weights, dx, classes, row, slope * (target + rest * row.weights),
                   slope * rest);
      dx[labels.label[n]] -= slope * target;
    }
  });
}

}  // namespace

FLEET_KERNEL(cpu, weighted_cross_entropy) { def.create = make_loss; }
FLEET_KERNEL(cpu, weighted_cross_entropy_grad) { def.create = make_gradient; }

}  // namespace fleet
