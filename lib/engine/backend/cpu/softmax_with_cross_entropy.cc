// softmax_with_cross_entropy and weighted_cross_entropy, which has a weight per class (`weighted`).
#include "backend/cpu/labels.h"
#include "backend/cpu/simd_math.h"

namespace fleet {
namespace {

struct Row {
  float largest, sum;    // sum of exp(x - largest)
  float weights, drawn;  // sum of the weights, and of weight * (x - largest): for label smoothing
};

template <bool weighted>
FLEET_SIMD Row scan_row(const float* x, const float* weight, int64_t classes) {
  const float largest = cpu::row_max(x, classes);
  float sum = 0, weights = 0, drawn = 0;
#pragma omp simd reduction(+ : sum, weights, drawn)
  for (int64_t c = 0; c < classes; ++c) {
    const float shifted = x[c] - largest;
    sum += cpu::fast_exp(shifted);
    if constexpr (weighted) weights += weight[c];
    drawn += weighted ? weight[c] * shifted : shifted;
  }
  return {largest, sum, weights, drawn};
}

FLEET_SIMD void row_softmax(const float* x, float* y, int64_t classes, float largest, float sum) {
  const float factor = 1 / sum;
#pragma omp simd
  for (int64_t c = 0; c < classes; ++c) y[c] = cpu::fast_exp(x[c] - largest) * factor;
}

// dx = softmax(x) * slope - weight * rest
template <bool weighted>
FLEET_SIMD void row_gradient(const float* x, const float* weight, float* dx, int64_t classes,
                             const Row& row, float slope, float rest) {
  const float factor = slope / row.sum;
#pragma omp simd
  for (int64_t c = 0; c < classes; ++c) {
    dx[c] = cpu::fast_exp(x[c] - row.largest) * factor - (weighted ? weight[c] * rest : rest);
  }
}

// The weights of the classes, or null.
template <bool weighted>
const float* weights_of(const KernelContext& context) {
  return weighted ? context.inputs[2].as<float>() : nullptr;
}

template <bool weighted>
std::unique_ptr<Kernel> make_loss(KernelContext& context) {
  const cpu::Labels labels(context, context.inputs[0], context.inputs[1]);
  const float* logits = context.inputs[0].as<float>();
  const float* weights = weights_of<weighted>(context);
  float* loss = context.outputs[0].as<float>();
  float* softmax = weighted ? nullptr : context.outputs[1].as<float>();
  float* own_weight = weighted ? context.outputs[1].as<float>() : nullptr;
  const double smoothing = context.attributes().number("label_smoothing");
  return make_kernel([=](Stream&) {
    labels.check(weighted ? "weighted_cross_entropy" : "softmax_with_cross_entropy");
    const int64_t classes = labels.classes;
    const bool parallel = labels.samples * classes >= cpu::kParallelElements;
#pragma omp parallel for if (parallel)
    for (int64_t n = 0; n < labels.samples; ++n) {
      const float* x = logits + n * classes;
      const Row row = scan_row<weighted>(x, weights, classes);
      if (softmax) row_softmax(x, softmax + n * classes, classes, row.largest, row.sum);
      if (labels.ignored(n)) {
        loss[n] = 0;
        if (own_weight) own_weight[n] = 0;
        continue;
      }
      const int64_t label = labels.label[n];
      const double norm = std::log(static_cast<double>(row.sum));
      const double weight = weighted ? weights[label] : 1;
      double value = weight * (norm - (x[label] - row.largest));
      if (smoothing > 0) {
        const auto count = static_cast<double>(classes);
        const double uniform =
            weighted ? (row.weights * norm - row.drawn) / count : norm - row.drawn / count;
        value = (1 - smoothing) * value + smoothing * uniform;
      }
      loss[n] = static_cast<float>(value);
      if (own_weight) own_weight[n] = weights[label];
    }
  });
}

template <bool weighted>
std::unique_ptr<Kernel> make_gradient(KernelContext& context) {
  const cpu::Labels labels(context, context.inputs[0], context.inputs[1]);
  const float* logits = context.inputs[0].as<float>();
  const float* weights = weights_of<weighted>(context);
  const float* dloss = context.inputs.back().as<float>();
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
      const int64_t label = labels.label[n];
      const Row row = scan_row<weighted>(x, weights, classes);
      const float slope = dloss[n], target = weighted ? on_label * weights[label] : on_label;
      const float total = weighted ? target + rest * row.weights : 1;  // of all targets
      row_gradient<weighted>(x, weights, dx, classes, row, slope * total, slope * rest);
      dx[label] -= slope * target;
    }
  });
}

}  // namespace

FLEET_KERNEL(cpu, softmax_with_cross_entropy) { def.create = make_loss<false>; }
FLEET_KERNEL(cpu, softmax_with_cross_entropy_grad) { def.create = make_gradient<false>; }
FLEET_KERNEL(cpu, weighted_cross_entropy) { def.create = make_loss<true>; }
FLEET_KERNEL(cpu, weighted_cross_entropy_grad) { def.create = make_gradient<true>; }

}  // namespace fleet
