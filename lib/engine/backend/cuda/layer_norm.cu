#include <cmath>

#include "backend/cuda/broadcast_loops.h"
#include "backend/cuda/rows.h"

namespace fleet {
namespace {

struct Extent {
  int64_t rows, size;
  float epsilon;
};

Extent extent_of(const Attributes& attributes, const Shape& x) {
  int64_t rows = 1;
  for (int d = 0; d < attributes.integer("begin_norm_axis"); ++d) rows *= x[d];
  return {rows, x.elements() / rows, static_cast<float>(attributes.number("epsilon"))};
}

// The row is read three times, from the cache after the first. The variance uses distances from the
// mean, which keeps precision for means far from zero.
template <int pack, typename T>
struct NormalizeRow {
  Extent extent;
  const T* x;
  const float *scale, *bias;  // null: 1 and 0
  T* y;
  float *mean, *variance;  // null if unused
  template <int threads>
  __device__ void operator()(cuda::RowThreads<threads> row_threads, int64_t row) const {
    const int64_t at = row * extent.size, first = row_threads.first() * pack;
    const auto count = static_cast<float>(extent.size);
    float sum = 0, squares = 0;
    for (int64_t i = first; i < extent.size; i += threads * pack) {
      const auto values = cuda::load_floats<pack>(x, at + i);
#pragma unroll
      for (int k = 0; k < pack; ++k) sum += values.at[k];
    }
    const float middle = row_threads.sum(sum) / count;
    for (int64_t i = first; i < extent.size; i += threads * pack) {
      const auto values = cuda::load_floats<pack>(x, at + i);
#pragma unroll
      for (int k = 0; k < pack; ++k) {
        squares += (values.at[k] - middle) * (values.at[k] - middle);
      }
    }
    const float spread = row_threads.sum(squares) / count;
    const float factor = 1 / sqrtf(spread + extent.epsilon);
    for (int64_t i = first; i < extent.size; i += threads * pack) {
      auto values = cuda::load_floats<pack>(x, at + i);
#pragma unroll
      for (int k = 0; k < pack; ++k) {
        float value = (values.at[k] - middle) * factor;
        if (scale) value *= scale[i + k];
        if (bias) value += bias[i + k];
        values.at[k] = value;
      }
      cuda::store_floats<pack>(y, at + i, values);
    }
    if (row_threads.first() != 0) return;
    if (mean) mean[row] = middle;
    if (variance) variance[row] = spread;
  }
};

// The inputs of a row's gradient.
template <typename T>
struct Backward {
  Extent extent;
  const T *x, *dy;
  const float *scale, *mean, *variance;
  __device__ float factor(int64_t row) const { return 1 / sqrtf(variance[row] + extent.epsilon); }
};

// dx may equal dy: every thread reads its elements before it writes them.
template <int pack, typename T>
struct DataGradRow {
  Backward<T> b;
  T* dx;
  template <int threads>
  __device__ void operator()(cuda::RowThreads<threads> row_threads, int64_t row) const {
    const int64_t size = b.extent.size, at = row * size, first = row_threads.first() * pack;
    const float factor = b.factor(row), mean = b.mean[row];
    float sum = 0, product = 0;
    for (int64_t i = first; i < size; i += threads * pack) {
      const auto x = cuda::load_floats<pack>(b.x, at + i),
                 dy = cuda::load_floats<pack>(b.dy, at + i);
#pragma unroll
      for (int k = 0; k < pack; ++k) {
        const float g = dy.at[k] * (b.scale ? b.scale[i + k] : 1.0f);
        sum += g;
        product += g * (x.at[k] - mean) * factor;
      }
    }
    const float mean_slope = row_threads.sum(sum) / static_cast<float>(size);
    const float mean_product = row_threads.sum(product) / static_cast<float>(size);
    for (int64_t i = first; i < size; i += threads * pack) {
      const auto x = cuda::load_floats<pack>(b.x, at + i);
      auto dy = cuda::load_floats<pack>(b.dy, at + i);
#pragma unroll
      for (int k = 0; k < pack; ++k) {
        const float g = dy.at[k] * (b.scale ? b.scale[i + k] : 1.0f);
        const float n = (x.at[k] - mean) * factor;
        dy.at[k] = (g - mean_slope - n * mean_product) * factor;
      }
      cuda::store_floats<pack>(dx, at + i, dy);
    }
  }
};

template <typename T>
struct ScaleGrad {
  Backward<T> backward;
  __device__ float operator()(int64_t at, int64_t) const {
    const int64_t row = cuda::quotient(at, backward.extent.size);
    const float distance = cuda::to_float(backward.x[at]) - backward.mean[row];
    return cuda::to_float(backward.dy[at]) * distance * backward.factor(row);
  }
};

template <typename T>
struct BiasGrad {
  const T* dy;
  __device__ float operator()(int64_t at, int64_t) const { return cuda::to_float(dy[at]); }
};

// Runs Body<pack, T>{members...} over all rows, with the widest packs that divide a row.
template <typename T, template <int, typename> typename Body, typename... Members>
void launch_packs(cudaStream_t stream, const Extent& extent, Members... members) {
  constexpr int kWide = cuda::kPack<T>;
  if (extent.size % kWide == 0) {
    cuda::launch_rows(stream, extent.rows, extent.size, Body<kWide, T>{members...});
  } else {
    cuda::launch_rows(stream, extent.rows, extent.size, Body<1, T>{members...});
  }
}

// Rows summed elementwise.
cuda::BroadcastLoop columns_of(const Extent& extent) {
  return {.outer = extent.rows, .middle = extent.size, .inner = 1, .valid = extent.size};
}

}  // namespace

FLEET_KERNEL(cuda, layer_norm) {
  def.dtypes = cuda::floating_types();
  def.create = [](KernelContext& context) {
    const Argument x = context.inputs[0], y = context.outputs[0];
    const Extent extent = extent_of(context.attributes(), x.shape);
    const float* scale = context.inputs[1].as<const float>();
    const float* bias = context.inputs[2].as<const float>();
    float* mean = context.outputs[1].as<float>();
    float* variance = context.outputs[2].as<float>();
    return cuda::dispatch(x.dtype, [&](auto type) {
      using T = decltype(type);
      return make_kernel([=](Stream& stream) {
        launch_packs<T, NormalizeRow>(cuda::stream_of(stream), extent, extent, x.as<const T>(),
                                      scale, bias, y.as<T>(), mean, variance);
      });
    });
  };
}

FLEET_KERNEL(cuda, layer_norm_grad) {
  def.dtypes = cuda::floating_types();
  def.layouts = [](LayoutQuery& query) {
    query.workspace(cuda::broadcast_workspace(
        columns_of(extent_of(query.attributes(), query.input_var(0).shape))));
  };
  def.create = [](KernelContext& context) {
    const Argument x = context.inputs[0], dy = context.inputs[4], dx = context.outputs[0];
    const Extent extent = extent_of(context.attributes(), x.shape);
    float* dscale = context.outputs[1].as<float>();
    float* dbias = context.outputs[2].as<float>();
    float* partial = static_cast<float*>(context.workspace);
    return cuda::dispatch(x.dtype, [&](auto type) {
      using T = decltype(type);
      const Backward<T> backward{.extent = extent,
                                 .x = x.as<const T>(),
                                 .dy = dy.as<const T>(),
                                 .scale = context.inputs[1].as<const float>(),
                                 .mean = context.inputs[2].as<const float>(),
                                 .variance = context.inputs[3].as<const float>()};
      return make_kernel([=](Stream& handle) {
        const cudaStream_t stream = cuda::stream_of(handle);
        const cuda::BroadcastLoop columns = columns_of(extent);
        if (dscale) cuda::sum_broadcast(stream, columns, ScaleGrad<T>{backward}, partial, dscale);
        if (dbias) cuda::sum_broadcast(stream, columns, BiasGrad<T>{backward.dy}, partial, dbias);
        if (!dx) return;
        launch_packs<T, DataGradRow>(stream, extent, backward, dx.as<T>());
      });
    });
  };
}

}  // namespace fleet
