// Loops over elements: how work is split among threads, and kernels made from a function over a
// range.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/cpu.h"
#include "exec/kernel.h"
#include "tensor/float16.h"

namespace fleet::cpu {

// The types that our own loops compute in; 16-bit values are converted to float.
inline const std::vector<DType> kLoopTypes = {DType::kFloat32, DType::kBFloat16};

// For kernels that only move elements.
inline const std::vector<DType> kAllTypes = {DType::kFloat32,  DType::kFloat64, DType::kFloat16,
                                             DType::kBFloat16, DType::kInt64,   DType::kInt32,
                                             DType::kUInt8};

// Calls body<T>(T()) for a type of that list.
template <typename Body>
auto with_loop_type(DType dtype, Body body) {
  return dtype == DType::kBFloat16 ? body(BFloat16()) : body(float());
}
// Like with_loop_type(), for float16, too.
template <typename Body>
auto with_float_type(DType dtype, Body body) {
  return dtype == DType::kFloat16 ? body(Float16()) : with_loop_type(dtype, body);
}
// Like with_loop_type(), for any type.
template <typename Body>
auto with_any_type(DType dtype, Body body) {
  switch (dtype) {
    case DType::kFloat64:
      return body(double());
    case DType::kInt64:
      return body(int64_t());
    case DType::kInt32:
      return body(int32_t());
    case DType::kUInt8:
      return body(uint8_t());
    default:
      return with_float_type(dtype, body);
  }
}

// Below this many elements, starting a thread costs more than it gains.
inline constexpr int64_t kParallelElements = 16384;
// Elements of one reduction step. Its bounds, and therefore the sums, do not depend on the number
// of threads.
inline constexpr int64_t kReduceElements = 16384;

// Calls body(begin, end) for ranges that cover 0..count-1, each on its own thread, split at whole
// cache lines of float.
template <typename Body>
void parallel_ranges(int64_t count, Body body) {
  if (count < kParallelElements) {
    body(int64_t{0}, count);
    return;
  }
#pragma omp parallel
  {
    const int64_t lines = (count + 15) / 16, threads = omp_get_num_threads();
    const int64_t thread = omp_get_thread_num();
    const int64_t begin = lines * thread / threads * 16;
    const int64_t end = std::min(count, lines * (thread + 1) / threads * 16);
    if (begin < end) body(begin, end);
  }
}

// A copy by all threads. Does nothing if source and target are the same.
inline void parallel_copy(void* to, const void* from, int64_t bytes) {
  if (to == from) return;
  parallel_ranges((bytes + 3) / 4, [=](int64_t begin, int64_t end) {
    const int64_t first = begin * 4, last = std::min(end * 4, bytes);
    std::memcpy(static_cast<char*>(to) + first, static_cast<const char*>(from) + first,
                last - first);
  });
}

// Output 0 = input 0, in the order of memory.
inline std::unique_ptr<Kernel> copy_kernel(const KernelContext& context) {
  const void* x = context.inputs[0].data;
  void* y = context.outputs[0].data;
  const auto bytes = static_cast<int64_t>(context.inputs[0].bytes());
  return make_kernel([=](Stream&) { parallel_copy(y, x, bytes); });
}

// For operations that change the shape alone: plain tensors keep their memory order.
inline void define_copy(KernelDef& def) {
  def.dtypes = kAllTypes;
  def.create = [](KernelContext& context) { return copy_kernel(context); };
}

// The part of a gradient that relu passes: where y is above 0 or NaN, as in PyTorch. Takes values,
// not memory: a conditional load would prevent vectorization.
FLEET_INLINE float where_positive(float y, float value) { return y <= 0 ? 0 : value; }

inline void keep_layout(LayoutQuery& query) { same_layout(query, /*keeps_zeros=*/true); }
inline void keep_unpadded_layout(LayoutQuery& query) { same_layout(query, /*keeps_zeros=*/false); }

template <typename F, typename T>
static FLEET_SIMD void map_range(F function, const T* x, T* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] = function(x[i]);
}
template <typename F, typename T>
static FLEET_SIMD void map_range(F function, const T* x, const T* y, T* z, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) z[i] = function(x[i], y[i]);
}

// Output 0 = function(input 0), with the same layout and one of kLoopTypes.
// F: FLEET_INLINE float operator()(float) const.
template <typename F>
std::unique_ptr<Kernel> unary_kernel(KernelContext& context, F function) {
  const int64_t count = context.outputs[0].layout.elements();
  return with_loop_type(context.outputs[0].dtype, [&]<typename T>(T) {
    const T* x = context.inputs[0].as<T>();
    T* y = context.outputs[0].as<T>();
    return make_kernel([=](Stream&) {
      parallel_ranges(count, [=](int64_t begin, int64_t end) {
        map_range(function, x + begin, y + begin, end - begin);
      });
    });
  });
}

// Output 0 = function(input 0, input 1), all with the same type and layout.
template <typename F>
std::unique_ptr<Kernel> binary_kernel(KernelContext& context, F function) {
  const int64_t count = context.outputs[0].layout.elements();
  return with_loop_type(context.outputs[0].dtype, [&]<typename T>(T) {
    const T* x = context.inputs[0].as<T>();
    const T* y = context.inputs[1].as<T>();
    T* z = context.outputs[0].as<T>();
    return make_kernel([=](Stream&) {
      parallel_ranges(count, [=](int64_t begin, int64_t end) {
        map_range(function, x + begin, y + begin, z + begin, end - begin);
      });
    });
  });
}

// The kernels of an elementwise operation of x and of its gradient (ops/activation_formulas.h).
template <typename F>
void define_unary(KernelDef& def, bool keeps_zeros = true) {
  def.dtypes = kLoopTypes;
  def.layouts = keeps_zeros ? keep_layout : keep_unpadded_layout;
  def.create = [](KernelContext& context) { return unary_kernel(context, F()); };
}
template <typename F>
void define_binary(KernelDef& def) {
  def.dtypes = kLoopTypes;
  def.layouts = keep_layout;
  def.create = [](KernelContext& context) { return binary_kernel(context, F()); };
}

}  // namespace fleet::cpu
