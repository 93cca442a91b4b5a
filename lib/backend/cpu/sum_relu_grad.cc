#include <algorithm>
#include <vector>

#include "exec/kernel.h"

namespace fleet {
namespace {

// So many elements of all inputs that the sum so far stays in the cache.
constexpr int64_t kBlock = 4096;

void mask_sum(const float* y, const std::vector<const float*>& dy, float* dx, int64_t begin,
              int64_t count) {
  const float *first = dy[0] + begin, *second = dy[dy.size() > 1 ? 1 : 0] + begin;
  const float* mask = y + begin;
  float* out = dx + begin;
  if (dy.size() == 1) {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) out[i] = mask[i] > 0 ? first[i] : 0;
    return;
  }
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) out[i] = mask[i] > 0 ? first[i] + second[i] : 0;
  for (size_t k = 2; k < dy.size(); ++k) {
    const float* more = dy[k] + begin;
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) out[i] += mask[i] > 0 ? more[i] : 0;
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
        mask_sum(y, dy, dx, begin, std::min(kBlock, count - begin));
      }
    });
  };
}

}  // namespace fleet
