// Kernels that apply a function of floats to all elements, in one pass over memory with 128-bit
// accesses. For .cu files.
#pragma once

#include "backend/cuda/types.h"
#include "base/cpu.h"
#include "exec/kernel.h"

namespace fleet::cuda {

// Any layout shared by all arguments. Unpadded for functions that do not map 0 to 0.
inline void keep_layout(LayoutQuery& query) { same_layout(query, /*keeps_zeros=*/true); }
inline void keep_unpadded_layout(LayoutQuery& query) { same_layout(query, /*keeps_zeros=*/false); }

// out[i] = function(in[i]...), one pack per thread; out may be one of the inputs.
template <int pack, typename F, typename Out, typename... In>
__global__ void map_elements(int64_t count, F function, Out* out, const In*... in) {
  const int64_t begin = thread_index() * pack;
  if (begin + pack <= count) {
    const auto apply = [&](const auto&... values) {
      Pack<float, pack> result;
#pragma unroll
      for (int i = 0; i < pack; ++i) result.at[i] = function(values.at[i]...);
      return result;
    };
    store_floats<pack>(out, begin, apply(load_floats<pack>(in, begin)...));
    return;
  }
#pragma unroll 1
  for (int64_t i = begin; i < count; ++i) out[i] = from_float<Out>(function(to_float(in[i])...));
}

template <typename F, typename Out, typename... In>
void map(cudaStream_t stream, int64_t count, F function, Out* out, const In*... in) {
  constexpr int kWidest = std::max({kPack<Out>, kPack<In>...});
  if (is_aligned(out) && (is_aligned(in) && ...)) {
    launch(map_elements<kWidest, F, Out, In...>, blocks_for(count, kBlock * kWidest), kBlock, 0,
           stream, count, function, out, in...);
  } else {
    launch(map_elements<1, F, Out, In...>, blocks_for(count), kBlock, 0, stream, count, function,
           out, in...);
  }
}

// Output 0 = function(input 0), with the same type and layout. F: float operator()(float) const.
template <typename F>
std::unique_ptr<Kernel> unary_kernel(KernelContext& context, F function) {
  const Argument x = context.inputs[0], y = context.outputs[0];
  return dispatch(y.dtype, [&](auto type) {
    using T = decltype(type);
    return make_kernel([=](Stream& stream) {
      map(stream_of(stream), y.layout.elements(), function, y.as<T>(), x.as<const T>());
    });
  });
}

// Output 0 = function(input 0, input 1), all with the same type and layout.
template <typename F>
std::unique_ptr<Kernel> binary_kernel(KernelContext& context, F function) {
  const Argument x = context.inputs[0], y = context.inputs[1], z = context.outputs[0];
  return dispatch(z.dtype, [&](auto type) {
    using T = decltype(type);
    return make_kernel([=](Stream& stream) {
      map(stream_of(stream), z.layout.elements(), function, z.as<T>(), x.as<const T>(),
          y.as<const T>());
    });
  });
}

// For ops/activation_formulas.h.
struct DeviceMath {
  static FLEET_INLINE float exp(float x) { return expf(x); }
  static FLEET_INLINE float tanh(float x) { return tanhf(x); }
  static FLEET_INLINE float erf(float x) { return erff(x); }
  static FLEET_INLINE float sigmoid(float x) { return 1 / (1 + expf(-x)); }
};

// The kernels of an elementwise operation of x and of its gradient (ops/activation_formulas.h).
template <typename F>
void define_unary(KernelDef& def, bool keeps_zeros = true) {
  def.dtypes = floating_types();
  def.layouts = keeps_zeros ? keep_layout : keep_unpadded_layout;
  def.create = [](KernelContext& context) { return unary_kernel(context, F()); };
}
template <typename F>
void define_binary(KernelDef& def, bool keeps_zeros = true) {
  def.dtypes = floating_types();
  def.layouts = keeps_zeros ? keep_layout : keep_unpadded_layout;
  def.create = [](KernelContext& context) { return binary_kernel(context, F()); };
}

}  // namespace fleet::cuda
