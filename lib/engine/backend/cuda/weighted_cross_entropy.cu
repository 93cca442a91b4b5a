#include <cmath>

#include "backend/cuda/labels.h"
#include "backend/cuda/rows.h"

namespace fleet {
namespace {

// The results of a thread, and then of its row, from one pass: a running maximum with the sum of
// exp(x - maximum), and the sums of weight and weight * x, which label smoothing needs.
struct RowSums {
  float largest, sum, weights, drawn;

  template <typename T, typename RowThreads>
  static __device__ RowSums of(const RowThreads& threads, int stride, const T* x,
                               const float* weight, int64_t classes, bool smooth) {
    float own_largest = cuda::Max::kIdentity, own_sum = 0;
    RowSums row{0, 0, 0, 0};
    for (int64_t c = threads.first(); c < classes; c += stride) {
      const float value = cuda::to_float(x[c]);
      row.weights += weight[c];
      row.drawn += weight[c] * value;
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
      row.weights = threads.sum(row.weights);
      row.drawn = threads.sum(row.drawn);
    }
    return row;
  }
};

template <typename T>
struct LossRow {
  cuda::Labels labels;
  const T* logits;
  const float* weights;
  T* loss;
  float* own_weight;
  float smoothing;
  template <int threads>
  __device__ void operator()(cuda::RowThreads<threads> row_threads, int64_t n) const {
    const T* x = logits + n * labels.classes;
    const RowSums row =
        RowSums::of(row_threads, threads, x, weights, labels.classes, smoothing > 0);
    if (row_threads.first() != 0) return;
    if (labels.ignored(n) || !labels.is_class(n)) {
      loss[n] = cuda::from_float<T>(labels.ignored(n) ? 0 : NAN);
      own_weight[n] = 0;
      return;
    }
    const int64_t label = labels.label[n];
    const float norm = logf(row.sum);
    float value = weights[label] * (norm - (cuda::to_float(x[label]) - row.largest));
    if (smoothing > 0) {
      const float uniform =
          (row.weights * (norm + row.largest) - row.drawn) / static_cast<float>(labels.classes);
      value = (1 - smoothing) * value + smoothing * uniform;
    }
    loss[n] = cuda::from_float<T>(value);
    own_weight[n] = weights[label];
  }
};

// dx may equal x: every thread reads its elements before it writes them.
template <typename T>
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
    const RowSums row =
        RowSums::of(row_threads, threads, logits + at, weights, labels.classes, smoothing > 0);
    const bool counts = !labels.ignored(n) && labels.is_class(n);
    const int64_t label = counts ? labels.label[n] : -1;
    const float slope = counts ? cuda::to_float(dloss[n]) : 0;
    const float target = counts ? (1 - smoothing) * weights[label] : 0;
    const float rest = smoothing / static_cast<float>(labels.classes);
    const float factor = (target + (smoothing > 0 ? rest * row.weights : 0)) / row.sum;
    for (int64_t c = row_threads.first(); c < labels.classes; c += threads) {
      const float wanted = (c == label ? target : 0) + rest * weights[c];
      const float value =
          (expf(cuda::to_float(logits[at + c]) - row.largest) * factor - wanted) * slope;
      dlogits[at + c] = cuda::from_float<T>(counts ? value : 0);
    }
  }
};

}  // namespace

FLEET_KERNEL(cuda, weighted_cross_entropy) {
  def.dtypes = cuda::floating_types();
  def.create = [](KernelContext& context) {
    const Argument x = context.inputs[0], loss = context.outputs[0];
    const cuda::Labels labels(context, x, context.inputs[1]);
    const auto* weights = context.inputs[2].as<const float>();
    auto* own_weight = context.outputs[1].as<float>();
    const auto smoothing = static_cast<float>(context.attributes().number("label_smoothing"));
    return cuda::dispatch(x.dtype, [&](auto type) {
      using T = decltype(type);
      return make_kernel([=](Stream& stream) {
        cuda::launch_rows(
            cuda::stream_of(stream), labels.samples, labels.classes,
            LossRow<T>{labels, x.as<const T>(), weights, loss.as<T>(), own_weight, smoothing});
      });
    });
  };
}

FLEET_KERNEL(cuda, weighted_cross_entropy_grad) {
  def.dtypes = cuda::floating_types();
  def.create = [](KernelContext& context) {
    const Argument x = context.inputs[0], dloss = context.inputs[3], dx = context.outputs[0];
    const cuda::Labels labels(context, x, context.inputs[1]);
    const auto* weights = context.inputs[2].as<const float>();
    const auto smoothing = static_cast<float>(context.attributes().number("label_smoothing"));
    return cuda::dispatch(x.dtype, [&](auto type) {
      using T = decltype(type);
      return make_kernel([=](Stream& stream) {
        cuda::launch_rows(cuda::stream_of(stream), labels.samples, labels.classes,
                          GradientRow<T>{labels, x.as<const T>(), weights, dloss.as<const T>(),
                                         dx.as<T>(), smoothing});
      });
    });
  };
}

}  // namespace fleet
