// Kernels of gated activations: y = f(gate) * up for rows [gate, up] of x (ops/gated_activation.h).
#pragma once

#include "backend/cpu/simd_math.h"
#include "ops/activation_formulas.h"

namespace fleet::cpu {

// `count` elements; gate and up: where they begin.
template <typename F, typename T>
static FLEET_SIMD void gate_range(F f, const T* gate, const T* up, T* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] = f(gate[i]) * static_cast<float>(up[i]);
}

// dgate may be gate, and dup may be up.
template <typename F, typename Slope, typename T>
static FLEET_SIMD void gate_gradient_range(F f, Slope slope, const T* gate, const T* up,
                                           const T* dy, T* dgate, T* dup, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float g = gate[i], u = up[i], d = dy[i];
    dgate[i] = slope(g, d * u);
    dup[i] = f(g) * d;
  }
}

// body(place in x of the gate, place in y, count) for pieces of rows with F elements each.
template <typename Body>
void for_gated_pieces(int64_t elements, int64_t half, Body body) {
  parallel_ranges(elements, [=](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t row = begin / half, first = begin % half;
      const int64_t count = std::min(half - first, end - begin);
      body(row * 2 * half + first, begin, count);
      begin += count;
    }
  });
}

template <typename F>
std::unique_ptr<Kernel> gated_kernel(KernelContext& context, F f) {
  const Shape& shape = context.outputs[0].shape;
  const int64_t elements = shape.elements(), half = shape[shape.rank() - 1];
  return with_loop_type(context.inputs[0].dtype, [&]<typename T>(T) {
    const T* x = context.inputs[0].as<const T>();
    T* y = context.outputs[0].as<T>();
    return make_kernel([=](Stream&) {
      for_gated_pieces(elements, half, [=](int64_t gate, int64_t at, int64_t count) {
        gate_range(f, x + gate, x + gate + half, y + at, count);
      });
    });
  });
}

template <typename F, typename Slope>
std::unique_ptr<Kernel> gated_gradient_kernel(KernelContext& context, F f, Slope slope) {
  const Shape& shape = context.inputs[1].shape;
  const int64_t elements = shape.elements(), half = shape[shape.rank() - 1];
  return with_loop_type(context.inputs[0].dtype, [&]<typename T>(T) {
    const T* x = context.inputs[0].as<const T>();
    const T* dy = context.inputs[1].as<const T>();
    T* dx = context.outputs[0].as<T>();
    return make_kernel([=](Stream&) {
      for_gated_pieces(elements, half, [=](int64_t gate, int64_t at, int64_t count) {
        gate_gradient_range(f, slope, x + gate, x + gate + half, dy + at, dx + gate,
                            dx + gate + half, count);
      });
    });
  });
}

}  // namespace fleet::cpu
