#include "backend/cpu/elementwise.h"

namespace fleet {
namespace {

FLEET_SIMD void add_two(const float* x, const float* y, float* out, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) out[i] = x[i] + y[i];
}

// So many elements of all inputs that the sum so far stays in the cache.
constexpr int64_t kBlock = 4096;

void add_all(const std::vector<const float*>& x, float* out, int64_t begin, int64_t end) {
  for (; begin < end; begin += kBlock) {
    const int64_t count = std::min(kBlock, end - begin);
    add_two(x[0] + begin, x[1] + begin, out + begin, count);
    for (size_t i = 2; i < x.size(); ++i) {
      add_two(out + begin, x[i] + begin, out + begin, count);
    }
  }
}

}  // namespace

FLEET_KERNEL(cpu, sum) {
  def.layouts = cpu::keep_layout;
  def.create = [](KernelContext& context) {
    std::vector<const float*> x;
    for (const Argument& input : context.inputs) x.push_back(input.as<float>());
    float* out = context.outputs[0].as<float>();
    const int64_t count = context.outputs[0].layout.elements();
    return make_kernel([=](Stream&) {
      if (x.size() == 1) return cpu::parallel_copy(out, x[0], count * sizeof(float));
      cpu::parallel_ranges(count, [&](int64_t begin, int64_t end) { add_all(x, out, begin, end); });
    });
  };
}

}  // namespace fleet
