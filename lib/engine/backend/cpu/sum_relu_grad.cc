#include <algorithm>
#include <vector>

#include "backend/cpu/elementwise.h"

namespace fleet {
namespace {

// Elements per input in one step, so that the partial sum stays in the cache.
constexpr int64_t kBlock = 4096;

template <typename T>
FLEET_SIMD void mask_sum(const T* y, const T* const* dy, int inputs, T* dx, int64_t begin,
                         int64_t count) {
  const T *first = dy[0] + begin, *second = dy[inputs > 1 ? 1 : 0] + begin;
  const T* mask = y + begin;
  T* out = dx + begin;
  if (inputs == 1) {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) out[i] = cpu::where_positive(mask[i], first[i]);
    return;
  }
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    out[i] = cpu::where_positive(mask[i], first[i] + second[i]);
  }
  for (int k = 2; k < inputs; ++k) {
    const T* more = dy[k] + begin;
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) out[i] = out[i] + cpu::where_positive(mask[i], more[i]);
  }
}

template <typename T>
std::unique_ptr<Kernel> make_sum(KernelContext& context) {
  const T* y = context.inputs[0].as<T>();
  std::vector<const T*> dy;
  for (size_t i = 1; i < context.inputs.size(); ++i) dy.push_back(context.inputs[i].as<T>());
  T* dx = context.outputs[0].as<T>();
  const int64_t count = context.outputs[0].layout.elements();
  return make_kernel([=](Stream&) {
#pragma omp parallel for if (count > kBlock)
    for (int64_t begin = 0; begin < count; begin += kBlock) {
      mask_sum(y, dy.data(), static_cast<int>(dy.size()), dx, begin,
               std::min(kBlock, count - begin));
    }
  });
}

}  // namespace

FLEET_KERNEL(cpu, sum_relu_grad) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = cpu::keep_layout;
  def.create = [](KernelContext& context) {
    return cpu::with_loop_type(context.inputs[0].dtype,
                               [&]<typename T>(T) { return make_sum<T>(context); });
  };
}

}  // namespace fleet
