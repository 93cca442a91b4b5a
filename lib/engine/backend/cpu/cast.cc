#include "backend/cpu/elementwise.h"
#include "graph/op.h"
#include "tensor/float16.h"

namespace fleet {
namespace {

template <typename From, typename To>
FLEET_SIMD void cast_range(const void* x, void* y, int64_t begin, int64_t end) {
  const From* from = static_cast<const From*>(x);
  To* to = static_cast<To*>(y);
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) {
    if constexpr (std::is_same_v<To, Float16> || std::is_same_v<To, BFloat16>) {
      to[i] = static_cast<float>(from[i]);
    } else {
      to[i] = static_cast<To>(from[i]);
    }
  }
}

using CastRange = void (*)(const void* x, void* y, int64_t begin, int64_t end);

CastRange cast_of(DType from, DType to) {
  return cpu::with_any_type(from, [&]<typename From>(From) {
    return cpu::with_any_type(
        to, []<typename To>(To) { return static_cast<CastRange>(cast_range<From, To>); });
  });
}

}  // namespace

FLEET_KERNEL(cpu, cast) {
  def.dtypes = cpu::kAllTypes;
  def.layouts = cpu::keep_layout;
  def.create = [](KernelContext& context) {
    const void* x = context.inputs[0].data;
    void* y = context.outputs[0].data;
    const int64_t count = context.outputs[0].layout.elements();
    const CastRange range = cast_of(context.inputs[0].dtype, context.outputs[0].dtype);
    return make_kernel([=](Stream&) {
      cpu::parallel_ranges(count, [=](int64_t begin, int64_t end) { range(x, y, begin, end); });
    });
  };
}

}  // namespace fleet
