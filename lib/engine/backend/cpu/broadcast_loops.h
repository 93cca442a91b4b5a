// Loops over two operands, the second of which is broadcast over the first (ops/broadcast.h). Plain
// layouts only.
#pragma once

#include "backend/cpu/elementwise.h"
#include "ops/broadcast.h"

namespace fleet::cpu {

// Any common layout if the shapes are equal; otherwise plain.
inline void broadcast_layouts(LayoutQuery& query, int x, int y) {
  if (query.input_var(x).shape == query.input_var(y).shape) keep_layout(query);
}

inline Broadcast broadcast_of_op(const KernelContext& context, const Shape& x, const Shape& y) {
  return *broadcast_of(x, y, context.attributes().integer("axis"));
}

// body(i, m) for each element i of x and its element m of y.
template <typename Body>
void broadcast_for_each(const Broadcast& b, Body body) {
  const bool parallel = b.outer * b.middle * b.inner >= kParallelElements;
  if (b.inner == 1) {
#pragma omp parallel for if (parallel)
    for (int64_t o = 0; o < b.outer; ++o) {
#pragma omp simd
      for (int64_t m = 0; m < b.middle; ++m) body(o * b.middle + m, m);
    }
    return;
  }
#pragma omp parallel for if (parallel)
  for (int64_t unit = 0; unit < b.outer * b.middle; ++unit) {
    const int64_t m = unit % b.middle;
#pragma omp simd
    for (int64_t i = 0; i < b.inner; ++i) body(unit * b.inner + i, m);
  }
}

// out[i] = function(x[i], y[m]) for inputs 0 and 1 of one of kLoopTypes.
template <typename Function>
std::unique_ptr<Kernel> broadcast_kernel(KernelContext& context, Function function) {
  const Broadcast b = broadcast_of_op(context, context.inputs[0].shape, context.inputs[1].shape);
  if (b.same()) return binary_kernel(context, function);
  return with_loop_type(context.inputs[0].dtype, [&]<typename T>(T) {
    const T* x = context.inputs[0].as<T>();
    const T* y = context.inputs[1].as<T>();
    T* out = context.outputs[0].as<T>();
    return make_kernel([=](Stream&) {
      broadcast_for_each(b, [=](int64_t i, int64_t m) { out[i] = function(x[i], y[m]); });
    });
  });
}

template <typename Function>
void define_broadcast(KernelDef& def) {
  def.dtypes = kLoopTypes;
  def.layouts = [](LayoutQuery& query) { broadcast_layouts(query, 0, 1); };
  def.create = [](KernelContext& context) { return broadcast_kernel(context, Function()); };
}

// Rows that form one summation step; independent of the number of threads.
inline int64_t reduce_steps(const Broadcast& b) {
  if (b.inner > 1) return b.outer;
  return std::min(b.outer, std::max<int64_t>(b.outer * b.middle / kReduceElements, 1));
}

// Bytes that broadcast_reduce() needs.
inline size_t reduce_workspace(const Broadcast& b) {
  return static_cast<size_t>(reduce_steps(b) * b.middle) * sizeof(float);
}

// dy[m] = sum of body(i, m) over the elements i of x that element m of y is broadcast to. body may
// also store a value for i.
template <typename T, typename Body>
void broadcast_reduce(const Broadcast& b, float* partial, T* dy, Body body) {
  const bool parallel = b.outer * b.middle * b.inner >= kParallelElements;
  const int64_t steps = reduce_steps(b);
  if (b.inner == 1) {
#pragma omp parallel for if (parallel)
    for (int64_t step = 0; step < steps; ++step) {
      float* sum = partial + step * b.middle;
      std::fill_n(sum, b.middle, 0.0f);
      for (int64_t o = b.outer * step / steps; o < b.outer * (step + 1) / steps; ++o) {
#pragma omp simd
        for (int64_t m = 0; m < b.middle; ++m) sum[m] += body(o * b.middle + m, m);
      }
    }
  } else {
#pragma omp parallel for if (parallel)
    for (int64_t unit = 0; unit < b.outer * b.middle; ++unit) {
      const int64_t m = unit % b.middle;
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t i = 0; i < b.inner; ++i) sum += body(unit * b.inner + i, m);
      partial[unit] = sum;
    }
  }
  for (int64_t m = 0; m < b.middle; ++m) {
    double sum = 0;
    for (int64_t step = 0; step < steps; ++step) sum += partial[step * b.middle + m];
    dy[m] = static_cast<float>(sum);
  }
}

}  // namespace fleet::cpu
