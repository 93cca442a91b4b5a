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
    switch (context.outputs[0].dtype) {
      case DType::kFloat64:
        return fill_with<double>(context);
      case DType::kFloat16:
        return fill_with<Float16>(context);
      case DType::kBFloat16:
        return fill_with<BFloat16>(context);
      case DType::kInt64:
        return fill_with<int64_t>(context);
      case DType::kInt32:
        return fill_with<int32_t>(context);
      case DType::kUInt8:
        return fill_with<uint8_t>(context);
      default:
        return fill_with<float>(context);
    }
  };
}

}  // namespace fleet
