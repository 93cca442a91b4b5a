#include <cmath>

#include "backend/cuda/labels.h"
#include "backend/cuda/rows.h"

namespace fleet {
namespace {

// The loss of a row in one pass: each thread keeps a running maximum and the sum of exp(x -
// maximum), which are then combined. softmax: null if unused.
template <typename T>
struct LossRow {
  cuda::Labels labels;
  const T* logits;
  T *loss, *softmax;
  float smoothing;
  template <int threads>
  __device__ void operator()(cuda::RowThreads<threads> row_threads, int64_t row) const {
    const T* x = logits + row * labels.classes;
    float own_largest = cuda::Max::kIdentity, own_sum = 0, total = 0;
    for (int64_t c = row_threads.first(); c < labels.classes; c += threads) {
      const float value = cuda::to_float(x[c]);
      total += value;
      if (value > own_largest) {
        own_sum = own_sum * expf(own_largest - value) + 1;
        own_largest = value;
      } else {
        own_sum += expf(value - own_largest);
      }
    }
    const float largest = row_threads.max(own_largest);
    const float sum = row_threads.sum(own_sum * expf(own_largest - largest));
    if (smoothing > 0) total = row_threads.sum(total);
    if (softmax) {
      const float factor = 1 / sum;
      for (int64_t c = row_threads.first(); c < labels.classes; c += threads) {
        softmax[row * labels.classes + c] =
            cuda::from_float<T>(expf(cuda::to_float(x[c]) - largest) * factor);
      }
    }
    if (row_threads.first() != 0) return;
    float value = 0;
    if (!labels.ignored(row)) value = labels.is_class(row) ? at_label(x, row, largest, sum) : NAN;
    if (smoothing > 0 && !labels.ignored(row)) {
      const float uniform = logf(sum) + largest - total / static_cast<float>(labels.classes);
      value = (1 - smoothing) * value + smoothing * uniform;
    }
    loss[row] = cuda::from_float<T>(value);
  }
  __device__ float at_label(const T* x, int64_t row, float largest, float sum) const {
    return logf(sum) - (cuda::to_float(x[labels.label[row]]) - largest);
  }
};

// dx = (softmax(x) - target) * dloss; dx may equal x: every thread reads its elements before it
// writes them.
template <typename T>
struct GradientRow {
  cuda::Labels labels;
  const T *logits, *dloss;
  T* dlogits;
  float smoothing;
  template <int threads>
  __device__ void operator()(cuda::RowThreads<threads> row_threads, int64_t row) const {
    const int64_t at = row * labels.classes;
    float own_largest = cuda::Max::kIdentity, own_sum = 0;
    for (int64_t c = row_threads.first(); c < labels.classes; c += threads) {
      const float value = cuda::to_float(logits[at + c]);
      if (value > own_largest) {
        own_sum = own_sum * expf(own_largest - value) + 1;
        own_largest = value;
      } else {
        own_sum += expf(value - own_largest);
      }
    }
    const float largest = row_threads.max(own_largest);
    const float sum = row_threads.sum(own_sum * expf(own_largest - largest));
    const bool counts = !labels.ignored(row) && labels.is_class(row);
    const float slope = counts ? cuda::to_float(dloss[row]) : 0;
    const float factor = 1 / sum, rest = smoothing / static_cast<float>(labels.classes);
    for (int64_t c = row_threads.first(); c < labels.classes; c += threads) {
      const float target = (c == labels.label[row] ? 1 - smoothing : 0) + rest;
      const float value =
          (expf(cuda::to_float(logits[at + c]) - largest) * factor - target) * slope;
      dlogits[at + c] = cuda::from_float<T>(counts ? value : 0);
    }
  }
};

}  // namespace

FLEET_KERNEL(cuda, softmax_with_cross_entropy) {
  def.dtypes = cuda::floating_types();
  def.create = [](KernelContext& context) {
    const Argument x = context.inputs[0], loss = context.outputs[0], softmax = context.outputs[1];
    const cuda::Labels labels(context, x, context.inputs[1]);
    const auto smoothing = static_cast<float>(context.attributes().number("label_smoothing"));
    return cuda::dispatch(x.dtype, [&](auto type) {
      using T = decltype(type);
      return make_kernel([=](Stream& stream) {
        cuda::launch_rows(
            cuda::stream_of(stream), labels.samples, labels.classes,
            LossRow<T>{labels, x.as<const T>(), loss.as<T>(), softmax.as<T>(), smoothing});
      });
    });
  };
}

FLEET_KERNEL(cuda, softmax_with_cross_entropy_grad) {
  def.dtypes = cuda::floating_types();
  def.create = [](KernelContext& context) {
    const Argument x = context.inputs[0], dloss = context.inputs[2], dx = context.outputs[0];
    const cuda::Labels labels(context, x, context.inputs[1]);
    const auto smoothing = static_cast<float>(context.attributes().number("label_smoothing"));
    return cuda::dispatch(x.dtype, [&](auto type) {
      using T = decltype(type);
      return make_kernel([=](Stream& stream) {
        cuda::launch_rows(
            cuda::stream_of(stream), labels.samples, labels.classes,
            GradientRow<T>{labels, x.as<const T>(), dloss.as<const T>(), dx.as<T>(), smoothing});
      });
    });
  };
}

}  // namespace fleet
