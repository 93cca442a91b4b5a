#include <cmath>

#include "backend/cuda/rows.h"
#include "exec/kernel.h"

namespace fleet {
namespace {

// x as [outer, classes, inner].
struct Extent {
  int64_t outer = 1, classes, inner = 1;
  Extent(const Shape& shape, int64_t axis) {
    const int at = static_cast<int>(axis < 0 ? axis + shape.rank() : axis);
    for (int d = 0; d < at; ++d) outer *= shape[d];
    classes = shape[at];
    for (int d = at + 1; d < shape.rank(); ++d) inner *= shape[d];
  }
};

// Rows of x are contiguous; y may equal x.
template <typename T>
struct SoftmaxRow {
  const T* x;
  T* y;
  int64_t classes;
  template <int threads>
  __device__ void operator()(cuda::RowThreads<threads> row_threads, int64_t row) const {
    const T* from = x + row * classes;
    float largest = cuda::Max::kIdentity;
    for (int64_t c = row_threads.first(); c < classes; c += threads) {
      largest = cuda::Max::of(largest, cuda::to_float(from[c]));
    }
    largest = row_threads.max(largest);
    float sum = 0;
    for (int64_t c = row_threads.first(); c < classes; c += threads) {
      sum += expf(cuda::to_float(from[c]) - largest);
    }
    const float factor = 1 / row_threads.sum(sum);
    for (int64_t c = row_threads.first(); c < classes; c += threads) {
      y[row * classes + c] = cuda::from_float<T>(expf(cuda::to_float(from[c]) - largest) * factor);
    }
  }
};

template <typename T>
struct SoftmaxGradRow {
  const T *y, *dy;
  T* dx;
  int64_t classes;
  template <int threads>
  __device__ void operator()(cuda::RowThreads<threads> row_threads, int64_t row) const {
    const int64_t at = row * classes;
    float dot = 0;
    for (int64_t c = row_threads.first(); c < classes; c += threads) {
      dot += cuda::to_float(y[at + c]) * cuda::to_float(dy[at + c]);
    }
    dot = row_threads.sum(dot);
    for (int64_t c = row_threads.first(); c < classes; c += threads) {
      dx[at + c] =
          cuda::from_float<T>(cuda::to_float(y[at + c]) * (cuda::to_float(dy[at + c]) - dot));
    }
  }
};

// One thread per column, if the axis is not the last: accesses are contiguous.
template <typename T>
__global__ void softmax_columns(const T* x, T* y, Extent extent) {
  const int64_t column = cuda::thread_index();
  if (column >= extent.outer * extent.inner) return;
  const int64_t at = column / extent.inner * extent.classes * extent.inner + column % extent.inner;
  float largest = cuda::Max::kIdentity, sum = 0;
  for (int64_t c = 0; c < extent.classes; ++c) {
    largest = cuda::Max::of(largest, cuda::to_float(x[at + c * extent.inner]));
  }
  for (int64_t c = 0; c < extent.classes; ++c) {
    sum += expf(cuda::to_float(x[at + c * extent.inner]) - largest);
  }
  for (int64_t c = 0; c < extent.classes; ++c) {
    const int64_t i = at + c * extent.inner;
    y[i] = cuda::from_float<T>(expf(cuda::to_float(x[i]) - largest) / sum);
  }
}

template <typename T>
__global__ void softmax_grad_columns(const T* y, const T* dy, T* dx, Extent extent) {
  const int64_t column = cuda::thread_index();
  if (column >= extent.outer * extent.inner) return;
  const int64_t at = column / extent.inner * extent.classes * extent.inner + column % extent.inner;
  float dot = 0;
  for (int64_t c = 0; c < extent.classes; ++c) {
    const int64_t i = at + c * extent.inner;
    dot += cuda::to_float(y[i]) * cuda::to_float(dy[i]);
  }
  for (int64_t c = 0; c < extent.classes; ++c) {
    const int64_t i = at + c * extent.inner;
    dx[i] = cuda::from_float<T>(cuda::to_float(y[i]) * (cuda::to_float(dy[i]) - dot));
  }
}

}  // namespace

FLEET_KERNEL(cuda, softmax) {
  def.dtypes = cuda::floating_types();
  def.create = [](KernelContext& context) {
    const Argument x = context.inputs[0], y = context.outputs[0];
    const Extent extent(x.shape, context.attributes().integer("axis"));
    return cuda::dispatch(x.dtype, [&](auto type) {
      using T = decltype(type);
      return make_kernel([=](Stream& stream) {
        if (extent.inner == 1) {
          cuda::launch_rows(cuda::stream_of(stream), extent.outer, extent.classes,
                            SoftmaxRow<T>{x.as<const T>(), y.as<T>(), extent.classes});
        } else {
          cuda::launch(softmax_columns<T>, cuda::blocks_for(extent.outer * extent.inner),
                       cuda::kBlock, 0, cuda::stream_of(stream), x.as<const T>(), y.as<T>(),
                       extent);
        }
      });
    });
  };
}

FLEET_KERNEL(cuda, softmax_grad) {
  def.dtypes = cuda::floating_types();
  def.create = [](KernelContext& context) {
    const Argument y = context.inputs[0], dy = context.inputs[1], dx = context.outputs[0];
    const Extent extent(y.shape, context.attributes().integer("axis"));
    return cuda::dispatch(y.dtype, [&](auto type) {
      using T = decltype(type);
      return make_kernel([=](Stream& stream) {
        if (extent.inner == 1) {
          cuda::launch_rows(
              cuda::stream_of(stream), extent.outer, extent.classes,
              SoftmaxGradRow<T>{y.as<const T>(), dy.as<const T>(), dx.as<T>(), extent.classes});
        } else {
          cuda::launch(softmax_grad_columns<T>, cuda::blocks_for(extent.outer * extent.inner),
                       cuda::kBlock, 0, cuda::stream_of(stream), y.as<const T>(), dy.as<const T>(),
                       dx.as<T>(), extent);
        }
      });
    });
  };
}

}  // namespace fleet
