// Elementwise operations whose second operand is broadcast over the first (ops/broadcast.h), and
// their gradients. For .cu files.
#pragma once

#include <optional>

#include "backend/cuda/elementwise.h"
#include "backend/cuda/layouts.h"
#include "ops/broadcast.h"

namespace fleet::cuda {

// x's memory as [samples, outer, middle, inner]; y's as [samples, valid]: `valid` elements along
// the middle, and the rest of x is padding.
struct BroadcastLoop {
  int64_t outer, middle, inner, valid;
  int64_t samples = 1;
  __host__ __device__ int64_t a_sample() const { return outer * middle * inner; }
  int64_t count() const { return samples * a_sample(); }
  // The element of y for element i of x; below 0: i is padding.
  __device__ int64_t of(int64_t i) const {
    const int64_t sample = samples == 1 ? 0 : quotient(i, a_sample());
    const int64_t m = remainder_of(quotient(i, inner), middle);
    return m < valid ? sample * valid + m : -1;
  }
};

// The loop that broadcasts y over x in this layout; empty if our kernels do not support it there.
// The plain layout supports every broadcast. Channels last supports one value per channel, one per
// channel of each sample (y plain), and one per sample.
inline std::optional<BroadcastLoop> broadcast_over(const Shape& x, const Layout& layout,
                                                   const Shape& y, int64_t axis) {
  const Broadcast b = *broadcast_of(x, y, axis);
  if (layout.is_plain()) return BroadcastLoop{b.outer, b.middle, b.inner, b.middle};
  if (x.rank() != 4 || layout.is_opaque() || layout.inner().size() > 1) return std::nullopt;
  const int64_t block = layout.inner().empty() ? 1 : layout.inner()[0].size;
  if (layout != channels_last(x, block)) return std::nullopt;
  const int64_t pixels = x[2] * x[3], channels = layout.padded()[1];
  if (b.outer == x[0] && b.middle == x[1] && b.inner == pixels) {
    return BroadcastLoop{x[0] * pixels, channels, 1, x[1]};
  }
  constexpr int64_t kMostSamples = 65535;  // blockIdx.z of sum_columns
  if (b.outer != 1 || x[0] > kMostSamples) return std::nullopt;
  if (b.middle == x[0] * x[1] && b.inner == pixels) {
    return BroadcastLoop{pixels, channels, 1, x[1], x[0]};
  }
  if (b.middle == x[0] && b.inner == x[1] * pixels) {
    return BroadcastLoop{1, x[0], channels * pixels, x[0]};
  }
  return std::nullopt;
}

// For operations whose inputs and outputs with x's shape take the layout of input 0 if possible,
// otherwise plain.
inline void broadcast_layouts(LayoutQuery& query, const Shape& y) {
  const Shape& x = query.input_var(0).shape;
  if (x == y) return keep_layout(query);
  const auto& layout = query.input(0);
  if (!layout || !broadcast_over(x, *layout, y, query.attributes().integer("axis"))) return;
  for (int i = 0; i < query.input_count(); ++i) {
    if (query.has_input(i) && query.input_var(i).shape == x) query.need(i, *layout);
  }
  for (int i = 0; i < query.output_count(); ++i) {
    if (query.has_output(i) && query.output_var(i).shape == x) query.give(i, *layout);
  }
}

inline BroadcastLoop broadcast_loop_of(const KernelContext& context, const Shape& y) {
  const Argument& x = context.inputs[0];
  return *broadcast_over(x.shape, x.layout, y, context.attributes().integer("axis"));
}

// out = function(x, y), one pack per thread.
template <int pack, typename F, typename T>
__global__ void broadcast_elements(BroadcastLoop loop, int64_t count, F function, const T* x,
                                   const T* y, T* out) {
  const int64_t begin = thread_index() * pack;
  if (begin >= count) return;
  const int64_t first = remainder_of(quotient(begin, loop.inner), loop.middle);
  if (loop.samples > 1) y += quotient(begin, loop.a_sample()) * loop.valid;
  Pack<float, pack> values = load_floats<pack>(x, begin);
#pragma unroll
  for (int i = 0; i < pack; ++i) {
    const int64_t m = loop.inner == 1 ? first + i : first;
    values.at[i] = function(values.at[i], m < loop.valid ? to_float(y[m]) : 0.0f);
  }
  store_floats<pack>(out, begin, values);
}

// Output 0 = function(input 0, input 1). F maps two zeros to zero.
template <typename F>
std::unique_ptr<Kernel> broadcast_kernel(KernelContext& context, F function) {
  const Argument x = context.inputs[0], y = context.inputs[1], out = context.outputs[0];
  FLEET_CHECK(x.dtype == y.dtype, "operands have different types");
  if (x.shape == y.shape) return binary_kernel(context, function);
  const BroadcastLoop loop = broadcast_loop_of(context, y.shape);
  return dispatch(x.dtype, [&](auto type) {
    using T = decltype(type);
    constexpr int kWide = kPack<T>;
    const int64_t run = loop.inner == 1 ? loop.middle : loop.inner;
    const bool wide = run % kWide == 0;
    const auto kernel = wide ? broadcast_elements<kWide, F, T> : broadcast_elements<1, F, T>;
    const unsigned blocks = blocks_for(loop.count(), wide ? kBlock * kWide : kBlock);
    return make_kernel([=](Stream& stream) {
      launch(kernel, blocks, kBlock, 0, stream_of(stream), loop, loop.count(), function,
             x.as<const T>(), y.as<const T>(), out.as<T>());
    });
  });
}

// Sums over the dimensions that y is broadcast over: in parts, whose sums are added in order.
inline constexpr int kBroadcastColumns = 32, kBroadcastRows = 8;

// The number of parts of one sample.
inline int64_t broadcast_parts(const BroadcastLoop& loop) {
  const int64_t summands = loop.outer * loop.inner, sums = loop.samples * loop.middle;
  return std::clamp<int64_t>(summands / 256, 1, sums < 256 ? 256 : 32);
}
inline size_t broadcast_workspace(const BroadcastLoop& loop) {
  return static_cast<size_t>(broadcast_parts(loop) * loop.samples * loop.middle) * sizeof(float);
}

// value(i, m): the contribution of element i of x to element m of y; m below 0: i is padding.
// partial: [samples, parts, middle].
template <typename F>
__global__ void sum_columns(BroadcastLoop loop, int64_t rows_a_part, F value, float* partial) {
  __shared__ float sums[kBroadcastRows][kBroadcastColumns];
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kBroadcastColumns + threadIdx.x;
  const int64_t begin = blockIdx.y * rows_a_part, sample = blockIdx.z;
  const int64_t end = begin + rows_a_part < loop.outer ? begin + rows_a_part : loop.outer;
  const int64_t m = column < loop.valid ? sample * loop.valid + column : -1;
  float sum = 0;
  if (column < loop.middle) {
    for (int64_t row = begin + threadIdx.y; row < end; row += kBroadcastRows) {
      sum += value((sample * loop.outer + row) * loop.middle + column, m);
    }
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  block_barrier();
  if (threadIdx.y != 0 || column >= loop.middle) return;
  for (int row = 1; row < kBroadcastRows; ++row) sum += sums[row][threadIdx.x];
  partial[(sample * gridDim.y + blockIdx.y) * loop.middle + column] = sum;
}

template <typename F>
__global__ void sum_runs(BroadcastLoop loop, int64_t summands_a_part, F value, float* partial) {
  const int64_t m = blockIdx.x, summands = loop.outer * loop.inner;
  const int64_t begin = blockIdx.y * summands_a_part;
  const int64_t end = begin + summands_a_part < summands ? begin + summands_a_part : summands;
  float sum = 0;
  for (int64_t k = begin + threadIdx.x; k < end; k += kBlock) {
    const int64_t outer = quotient(k, loop.inner), inner = k - outer * loop.inner;
    sum += value((outer * loop.middle + m) * loop.inner + inner, m);
  }
  sum = block_sum<kBlock>(sum);
  if (threadIdx.x == 0) partial[blockIdx.y * loop.middle + m] = sum;
}

template <typename T>
__global__ void sum_parts(BroadcastLoop loop, const float* partial, int64_t parts, T* sums) {
  const int64_t i = thread_index();
  if (i >= loop.samples * loop.valid) return;
  const int64_t sample = quotient(i, loop.valid), m = i - sample * loop.valid;
  float sum = 0;
  for (int64_t part = 0; part < parts; ++part) {
    sum += partial[(sample * parts + part) * loop.middle + m];
  }
  sums[i] = from_float<T>(sum);
}

template <typename F>
__global__ void visit_elements(BroadcastLoop loop, int64_t count, F value) {
  const int64_t i = thread_index();
  if (i < count) value(i, loop.of(i));
}

// sums[m] = sum of value(i, m) over the elements i of x that y's element m is broadcast to; null:
// each value is only visited once. F may write other results of an element.
template <typename F, typename T>
void sum_broadcast(cudaStream_t stream, const BroadcastLoop& loop, F value, float* partial,
                   T* sums) {
  if (!sums) {
    launch(visit_elements<F>, blocks_for(loop.count()), kBlock, 0, stream, loop, loop.count(),
           value);
    return;
  }
  const int64_t parts = broadcast_parts(loop);
  if (loop.inner == 1) {
    const dim3 grid(blocks_for(loop.middle, kBroadcastColumns), static_cast<unsigned>(parts),
                    static_cast<unsigned>(loop.samples));
    launch(sum_columns<F>, grid, dim3(kBroadcastColumns, kBroadcastRows), 0, stream, loop,
           ceil_div(loop.outer, parts), value, partial);
  } else {
    const dim3 grid(blocks_for(loop.middle, 1), static_cast<unsigned>(parts));
    launch(sum_runs<F>, grid, kBlock, 0, stream, loop, ceil_div(loop.outer * loop.inner, parts),
           value, partial);
  }
  launch(sum_parts<T>, blocks_for(loop.samples * loop.valid), kBlock, 0, stream, loop, partial,
         parts, sums);
}

}  // namespace fleet::cuda
