// Kernels of gated activations: y = f(gate) * up for rows [gate, up] of x (ops/gated_activation.h).
// For .cu files.
#pragma once

#include "backend/cuda/elementwise.h"
#include "ops/activation_formulas.h"

namespace fleet::cuda {

// One pack of y per thread. half: elements of a row of y, a multiple of pack.
template <int pack, typename F, typename T>
__global__ void gate_elements(int64_t count, int64_t half, F f, const T* x, T* y) {
  const int64_t at = thread_index() * pack;
  if (at >= count) return;
  const int64_t gate = at + quotient(at, half) * half;
  const auto gates = load_floats<pack>(x, gate), ups = load_floats<pack>(x, gate + half);
  Pack<float, pack> result;
#pragma unroll
  for (int k = 0; k < pack; ++k) result.at[k] = f(gates.at[k]) * ups.at[k];
  store_floats<pack>(y, at, result);
}

// dx may be x.
template <int pack, typename F, typename Slope, typename T>
__global__ void gate_gradients(int64_t count, int64_t half, F f, Slope slope, const T* x,
                               const T* dy, T* dx) {
  const int64_t at = thread_index() * pack;
  if (at >= count) return;
  const int64_t gate = at + quotient(at, half) * half;
  auto gates = load_floats<pack>(x, gate), ups = load_floats<pack>(x, gate + half);
  const auto slopes = load_floats<pack>(dy, at);
#pragma unroll
  for (int k = 0; k < pack; ++k) {
    const float g = gates.at[k], d = slopes.at[k];
    gates.at[k] = slope(g, d * ups.at[k]);
    ups.at[k] = f(g) * d;
  }
  store_floats<pack>(dx, gate, gates);
  store_floats<pack>(dx, gate + half, ups);
}

template <typename F>
std::unique_ptr<Kernel> gated_kernel(KernelContext& context, F f) {
  const Argument x = context.inputs[0], y = context.outputs[0];
  const int64_t count = y.shape.elements(), half = y.shape[y.shape.rank() - 1];
  return dispatch(x.dtype, [&](auto type) {
    using T = decltype(type);
    constexpr int kWide = kPack<T>;
    const bool wide = half % kWide == 0;
    const auto kernel = wide ? gate_elements<kWide, F, T> : gate_elements<1, F, T>;
    const unsigned blocks = blocks_for(count, wide ? kBlock * kWide : kBlock);
    return make_kernel([=](Stream& stream) {
      launch(kernel, blocks, kBlock, 0, stream_of(stream), count, half, f, x.as<const T>(),
             y.as<T>());
    });
  });
}

template <typename F, typename Slope>
std::unique_ptr<Kernel> gated_gradient_kernel(KernelContext& context, F f, Slope slope) {
  const Argument x = context.inputs[0], dy = context.inputs[1], dx = context.outputs[0];
  const int64_t count = dy.shape.elements(), half = dy.shape[dy.shape.rank() - 1];
  return dispatch(x.dtype, [&](auto type) {
    using T = decltype(type);
    constexpr int kWide = kPack<T>;
    const bool wide = half % kWide == 0;
    const auto kernel = wide ? gate_gradients<kWide, F, Slope, T> : gate_gradients<1, F, Slope, T>;
    const unsigned blocks = blocks_for(count, wide ? kBlock * kWide : kBlock);
    return make_kernel([=](Stream& stream) {
      launch(kernel, blocks, kBlock, 0, stream_of(stream), count, half, f, slope, x.as<const T>(),
             dy.as<const T>(), dx.as<T>());
    });
  });
}

}  // namespace fleet::cuda
