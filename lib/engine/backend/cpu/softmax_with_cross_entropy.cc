// softmax_with_cross_entropy and weighted_cross_entropy, which has a weight per class (`weighted`).
#include "backend/cpu/labels.h"
#include "backend/cpu/simd_math.h"

namespace fleet {
namespace {

struct Row {
  float largest, sum;    // sum of exp(x - largest)
  float weights, drawn;  // sum of the weights, and of weight * (x - largest): for label smoothing
};

template <bool weighted, typename T>
FLEET_SIMD Row scan_row(const T* x, const float* weight, int64_t classes) {
  float largest = static_cast<float>(x[0]);
#pragma omp simd reduction(max : largest)
  for (int64_t c = 0; c < classes; ++c) {
    const float value = static_cast<float>(x[c]);
    largest = value > largest ? value : largest;
  }
  float sum = 0, weights = 0, drawn = 0;
#pragma omp simd reduction(+ : sum, weights, drawn)
  for (int64_t c = 0; c < classes; ++c) {
    const float shifted = static_cast<float>(x[c]) - largest;
    sum += cpu::fast_exp(shifted);
    if constexpr (weighted) weights += weight[c];
    drawn += weighted ? weight[c] * shifted : shifted;
  }
  return {largest, sum, weights, drawn};
}

template <typename T>
FLEET_SIMD void row_softmax(const T* x, T* y, int64_t classes, float largest, float sum) {
  const float factor = 1 / sum;
#pragma omp simd
  for (int64_t c = 0; c < classes; ++c) {
    y[c] = cpu::fast_exp(static_cast<float>(x[c]) - largest) * factor;
  }
}

// dx = softmax(x) * slope - weight * rest; `own` is also subtracted from the label's.
template <bool weighted, typename T>
FLEET_SIMD void row_gradient(const T* x, const float* weight, T* dx, int64_t classes,
                             const Row& row, float slope, float rest, int64_t label, float own) {
  const float factor = slope / row.sum;
  const float at_label = static_cast<float>(x[label]);  // dx may be x
#pragma omp simd
  for (int64_t c = 0; c < classes; ++c) {
    const float value = static_cast<float>(x[c]);
    dx[c] = cpu::fast_exp(value - row.largest) * factor - (weighted ? weight[c] * rest : rest);
  }
  const float rest_of_label = weighted ? weight[label] * rest : rest;
  dx[label] = cpu::fast_exp(at_label - row.largest) * factor - rest_of_label - own;
}

// The weights of the classes, or null.
template <bool weighted>
const float* weights_of(const KernelContext& context) {
  return weighted ? context.inputs[2].as<float>() : nullptr;
}

template <bool weighted, typename T>
std::unique_ptr<Kernel> make_typed_loss(KernelContext& context) {
  const cpu::Labels labels(context, context.inputs[0], context.inputs[1]);
  const T* logits = context.inputs[0].as<T>();
  const float* weights = weights_of<weighted>(context);
  T* loss = context.outputs[0].as<T>();
  T* softmax = weighted ? nullptr : context.outputs[1].as<T>();
  float* own_weight = weighted ? context.outputs[1].as<float>() : nullptr;
  const double smoothing = context.attributes().number("label_smoothing");
  return make_kernel([=](Stream&) {
    labels.check(weighted ? "weighted_cross_entropy" : "softmax_with_cross_entropy");
    const int64_t classes = labels.classes;
    const bool parallel = labels.samples * classes >= cpu::kParallelElements;
#pragma omp parallel for if (parallel)
    for (int64_t n = 0; n < labels.samples; ++n) {
      const T* x = logits + n * classes;
      const Row row = scan_row<weighted>(x, weights, classes);
      if (softmax) row_softmax(x, softmax + n * classes, classes, row.largest, row.sum);
      if (labels.ignored(n)) {
        loss[n] = 0.0f;
        if (own_weight) own_weight[n] = 0;
        continue;
      }
      const int64_t label = labels.label[n];
      const double norm = std::log(static_cast<double>(row.sum));
      const double weight = weighted ? weights[label] : 1;
      double value = weight * (norm - (static_cast<float>(x[label]) - row.largest));
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

template <bool weighted, typename T>
std::unique_ptr<Kernel> make_typed_gradient(KernelContext& context) {
  const cpu::Labels labels(context, context.inputs[0], context.inputs[1]);
  const T* logits = context.inputs[0].as<T>();
  const float* weights = weights_of<weighted>(context);
  const T* dloss = context.inputs.back().as<T>();
  T* dlogits = context.outputs[0].as<T>();
  const double smoothing = context.attributes().number("label_smoothing");
  const float on_label = static_cast<float>(1 - smoothing);
  const float rest = static_cast<float>(smoothing / static_cast<double>(labels.classes));
  return make_kernel([=](Stream&) {
    const int64_t classes = labels.classes;
    const bool parallel = labels.samples * classes >= cpu::kParallelElements;
#pragma omp parallel for if (parallel)
    for (int64_t n = 0; n < labels.samples; ++n) {
      T* dx = dlogits + n * classes;
      if (labels.ignored(n)) {
        std::memset(dx, 0, classes * sizeof(T));
        continue;
      }
      const T* x = logits + n * classes;
      const int64_t label = labels.label[n];
      const Row row = scan_row<weighted>(x, weights, classes);
      const float slope = static_cast<float>(dloss[n]);
      const float target = weighted ? on_label * weights[label] : on_label;
      const float total = weighted ? target + rest * row.weights : 1;  // sum of all targets
      row_gradient<weighted>(x, weights, dx, classes, row, slope * total, slope * rest, label,
                             slope * target);
    }
  });
}

template <bool weighted>
void define_class_loss(KernelDef& def) {
  def.dtypes = cpu::kLoopTypes;
  def.create = [](KernelContext& context) {
    return cpu::with_loop_type(context.inputs[0].dtype, [&]<typename T>(T) {
      return make_typed_loss<weighted, T>(context);
    });
  };
}
template <bool weighted>
void define_class_loss_gradient(KernelDef& def) {
  def.dtypes = cpu::kLoopTypes;
  def.create = [](KernelContext& context) {
    return cpu::with_loop_type(context.inputs[0].dtype, [&]<typename T>(T) {
      return make_typed_gradient<weighted, T>(context);
    });
  };
}

}  // namespace

FLEET_KERNEL(cpu, softmax_with_cross_entropy) { define_class_loss<false>(def); }
FLEET_KERNEL(cpu, softmax_with_cross_entropy_grad) { define_class_loss_gradient<false>(def); }
FLEET_KERNEL(cpu, weighted_cross_entropy) { define_class_loss<true>(def); }
FLEET_KERNEL(cpu, weighted_cross_entropy_grad) { define_class_loss_gradient<true>(def); }

}  // namespace fleet
