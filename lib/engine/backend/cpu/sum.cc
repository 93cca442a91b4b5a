#include "backend/cpu/elementwise.h"

namespace fleet {
namespace {

template <typename T>
FLEET_SIMD void add_two(const T* x, const T* y, T* out, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) out[i] = x[i] + y[i];
}

// Elements per input in one step, so that the partial sum stays in the cache.
constexpr int64_t kBlock = 4096;

template <typename T>
void add_all(const std::vector<const T*>& x, T* out, int64_t begin, int64_t end) {
  for (; begin < end; begin += kBlock) {
    const int64_t count = std::min(kBlock, end - begin);
    T* to = out + begin;
    add_two<T>(x[0] + begin, x[1] + begin, to, count);
    for (size_t i = 2; i < x.size(); ++i) add_two<T>(to, x[i] + begin, to, count);
  }
}

template <typename T>
std::unique_ptr<Kernel> make_sum(KernelContext& context) {
  std::vector<const T*> x;
  for (const Argument& input : context.inputs) x.push_back(input.as<T>());
  T* out = context.outputs[0].as<T>();
  const int64_t count = context.outputs[0].layout.elements();
  return make_kernel([=](Stream&) {
    if (x.size() == 1) return cpu::parallel_copy(out, x[0], count * sizeof(T));
    cpu::parallel_ranges(count, [&](int64_t begin, int64_t end) { add_all(x, out, begin, end); });
  });
}

}  // namespace

FLEET_KERNEL(cpu, sum) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = cpu::keep_layout;
  def.create = [](KernelContext& context) {
    return cpu::with_loop_type(context.inputs[0].dtype,
                               [&]<typename T>(T) { return make_sum<T>(context); });
  };
}

}  // namespace fleet
