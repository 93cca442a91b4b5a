#include "backend/cpu/elementwise.h"

namespace fleet {
namespace {

template <typename T>
std::unique_ptr<Kernel> fill_with(KernelContext& context) {
  T* out = context.outputs[0].as<T>();
  const T value = static_cast<T>(context.attributes().number("value"));
  const int64_t count = context.outputs[0].layout.elements();
  return make_kernel([=](Stream&) {
    cpu::parallel_ranges(
        count, [=](int64_t begin, int64_t end) { std::fill(out + begin, out + end, value); });
  });
}

}  // namespace

FLEET_KERNEL(cpu, fill) {
  def.dtypes = cpu::kAllTypes;
  def.create = [](KernelContext& context) {
    return cpu::with_any_type(context.outputs[0].dtype,
                              [&]<typename T>(T) { return fill_with<T>(context); });
  };
}

}  // namespace fleet
