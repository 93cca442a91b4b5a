#include <algorithm>
#include <vector>

#include "backend/cpu/elementwise.h"

namespace fleet {
namespace {

// So many elements of all inputs that the sum so far stays in the cache.
constexpr int64_t kBlock = 4096;

FLEET_SIMD void mask_sum(const float* y, const float* const* dy, int inputs, float* dx,
                         int64_t begin, int64_t count) {
  const float *first = dy[0] + begin, *second = dy[inputs > 1 ? 1 : 0] + begin;
  const float* mask = y + begin;
  float* out = dx + begin;
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
    const float* more = dy[k] + begin;
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) out[i] += cpu::where_positive(mask[i], more[i]);
  }
}

}  // namespace

FLEET_KERNEL(cpu, sum_relu_grad) {
  def.layouts = [](LayoutQuery& query) { same_layout(query, /*keeps_zeros=*/true); };
  def.create = [](KernelContext& context) {
    const float* y = context.inputs[0].as<float>();
    std::vector<const float*> dy;
    for (size_t i = 1; i < context.inputs.size(); ++i) {
      dy.push_back(context.inputs[i].as<float>());
    }
    float* dx = context.outputs[0].as<float>();
    const int64_t count = context.outputs[0].layout.elements();
    return make_kernel([=](Stream&) {
#pragma omp parallel for if (count > kBlock)
      for (int64_t begin = 0; begin < count; begin += kBlock) {
        mask_sum(y, dy.data(), static_cast<int>(dy.size()), dx, begin,
                 std::min(kBlock, count - begin));
      }
    });
  };
}

}  // namespace fleet
