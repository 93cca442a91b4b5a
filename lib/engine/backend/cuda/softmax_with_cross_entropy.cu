// softmax_with_cross_entropy and weighted_cross_entropy, which has a weight per class (`weighted`).
#include <cmath>

#include "backend/cuda/labels.h"
#include "backend/cuda/rows.h"

namespace fleet {
namespace {

// The results of a thread, and then of its row, from one pass: a running maximum with the sum of
// exp(x - maximum), and the sums of weight and weight * x, which label smoothing needs.
struct RowSums {
  float largest, sum, weights, drawn;

  // weight: null: all are 1.
  template <bool weighted, typename T, typename RowThreads>
  static __device__ RowSums of(const RowThreads& threads, int stride, const T* x,
                               const float* weight, int64_t classes, bool smooth) {
    float own_largest = cuda::Max::kIdentity, own_sum = 0;
    RowSums row{0, 0, static_cast<float>(classes), 0};
    if (weighted) row.weights = 0;
    for (int64_t c = threads.first(); c < classes; c += stride) {
      const float value = cuda::to_float(x[c]);
      if (weighted) row.weights += weight[c];
      row.drawn += weighted ? weight[c] * value : value;
      if (value > own_largest) {
        own_sum = own_sum * expf(own_largest - value) + 1;
        own_largest = value;
      } else {
        own_sum += expf(value - own_largest);
      }
    }
    row.largest = threads.max(own_largest);
    row.sum = threads.sum(own_sum * expf(own_largest - row.largest));
    if (smooth) {
      if (weighted) row.weights = threads.sum(row.weights);
      row.drawn = threads.sum(row.drawn);
    }
    return row;
  }
};

// softmax and own_weight: null if unused.
template <typename T, bool weighted>
struct LossRow {
  cuda::Labels labels;
  const T* logits;
  const float* weights;
  T *loss, *softmax;
  float* own_weight;
  float smoothing;
  template <int threads>
  __device__ void operator()(cuda::RowThreads<threads> row_threads, int64_t n) const {
    const T* x = logits + n * labels.classes;
    const RowSums row =
        RowSums::of<weighted>(row_threads, threads, x, weights, labels.classes, smoothing > 0);
    if (softmax) {
      const float factor = 1 / row.sum;
      for (int64_t c = row_threads.first(); c < labels.classes; c += threads) {
        softmax[n * labels.classes + c] =
            cuda::from_float<T>(expf(cuda::to_float(x[c]) - row.largest) * factor);
      }
    }
    if (row_threads.first() != 0) return;
    if (labels.ignored(n) || !labels.is_class(n)) {
      loss[n] = cuda::from_float<T>(labels.ignored(n) ? 0 : NAN);
      if (own_weight) own_weight[n] = 0;
      return;
    }
    const int64_t label = labels.label[n];
    const float weight = weighted ? weights[label] : 1, norm = logf(row.sum);
    float value = weight * (norm - (cuda::to_float(x[label]) - row.largest));
    if (smoothing > 0) {
      const auto count = static_cast<float>(labels.classes);
      const float uniform = weighted ? (row.weights * (norm + row.largest) - row.drawn) / count
                                     : norm + row.largest - row.drawn / count;
      value = (1 - smoothing) * value + smoothing * uniform;
    }
    loss[n] = cuda::from_float<T>(value);
    if (own_weight) own_weight[n] = weight;
  }
};

// dx may equal x: every thread reads its elements before it writes them.
template <typename T, bool weighted>
struct GradientRow {
  cuda::Labels labels;
  const T* logits;
  const float* weights;
  const T* dloss;
  T* dlogits;
  float smoothing;
  template <int threads>
  __device__ void operator()(cuda::RowThreads<threads> row_threads, int64_t n) const {
    const int64_t at = n * labels.classes;
    const RowSums row = RowSums::of<weighted>(row_threads, threads, logits + at, weights,
                                              labels.classes, weighted && smoothing > 0);
    const bool counts = !labels.ignored(n) && labels.is_class(n);
    const int64_t label = counts ? labels.label[n] : -1;
    const float slope = counts ? cuda::to_float(dloss[n]) : 0;
    const float weight = counts && weighted ? weights[label] : 1;
    const float target = counts ? (1 - smoothing) * weight : 0;
    const float rest = smoothing / static_cast<float>(labels.classes);
    const float smoothed = smoothing > 0 ? rest * row.weights : 0;
    const float factor = (weighted ? target + smoothed : 1) / row.sum;
    for (int64_t c = row_threads.first(); c < labels.classes; c += threads) {
      const float wanted = (c == label ? target : 0) + (weighted ? rest * weights[c] : rest);
      const float value =
          (expf(cuda::to_float(logits[at + c]) - row.largest) * factor - wanted) * slope;
      dlogits[at + c] = cuda::from_float<T>(counts ? value : 0);
    }
  }
};

template <bool weighted>
const float* weights_of(const KernelContext& context) {
  return weighted ? context.inputs[2].as<const float>() : nullptr;
}

template <bool weighted>
std::unique_ptr<Kernel> make_loss(KernelContext& context) {
  const Argument x = context.inputs[0], loss = context.outputs[0], second = context.outputs[1];
  const cuda::Labels labels(context, x, context.inputs[1]);
  const float* weights = weights_of<weighted>(context);
  const auto smoothing = static_cast<float>(context.attributes().number("label_smoothing"));
  return cuda::dispatch(x.dtype, [&](auto type) {
    using T = decltype(type);
    return make_kernel([=](Stream& stream) {
      cuda::launch_rows(cuda::stream_of(stream), labels.samples, labels.classes,
                        LossRow<T, weighted>{labels, x.as<const T>(), weights, loss.as<T>(),
                                             weighted ? nullptr : second.as<T>(),
                                             weighted ? second.as<float>() : nullptr, smoothing});
    });
  });
}

template <bool weighted>
std::unique_ptr<Kernel> make_gradient(KernelContext& context) {
  const Argument x = context.inputs[0], dloss = context.inputs.back(), dx = context.outputs[0];
  const cuda::Labels labels(context, x, context.inputs[1]);
  const float* weights = weights_of<weighted>(context);
  const auto smoothing = static_cast<float>(context.attributes().number("label_smoothing"));
  return cuda::dispatch(x.dtype, [&](auto type) {
    using T = decltype(type);
    return make_kernel([=](Stream& stream) {
      cuda::launch_rows(cuda::stream_of(stream), labels.samples, labels.classes,
                        GradientRow<T, weighted>{labels, x.as<const T>(), weights,
                                                 dloss.as<const T>(), dx.as<T>(), smoothing});
    });
  });
}

template <bool weighted>
void define_loss(KernelDef& def) {
  def.dtypes = cuda::floating_types();
  def.create = make_loss<weighted>;
}
template <bool weighted>
void define_gradient(KernelDef& def) {
  def.dtypes = cuda::floating_types();
  def.create = make_gradient<weighted>;
}

}  // namespace

FLEET_KERNEL(cuda, softmax_with_cross_entropy) { define_loss<false>(def); }
FLEET_KERNEL(cuda, softmax_with_cross_entropy_grad) { define_gradient<false>(def); }
FLEET_KERNEL(cuda, weighted_cross_entropy) { define_loss<true>(def); }
FLEET_KERNEL(cuda, weighted_cross_entropy_grad) { define_gradient<true>(def); }

}  // namespace fleet
