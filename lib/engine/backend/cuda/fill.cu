#include "backend/cuda/types.h"
#include "exec/kernel.h"

namespace fleet {
namespace {

template <typename T>
__global__ void fill_elements(T* out, int64_t count, T value) {
  const int64_t i = cuda::thread_index();
  if (i < count) out[i] = value;
}

template <typename T>
std::unique_ptr<Kernel> fill_with(KernelContext& context, T value) {
  T* out = context.outputs[0].as<T>();
  const int64_t count = context.outputs[0].layout.elements();
  return make_kernel([=](Stream& stream) {
    cuda::launch(fill_elements<T>, cuda::blocks_for(count), cuda::kBlock, 0,
                 cuda::stream_of(stream), out, count, value);
  });
}

}  // namespace

FLEET_KERNEL(cuda, fill) {
  def.dtypes = {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16,
                DType::kInt64,   DType::kInt32,   DType::kUInt8};
  def.create = [](KernelContext& context) {
    const double value = context.attributes().number("value");
    switch (context.outputs[0].dtype) {
      case DType::kFloat64:
        return fill_with(context, value);
      case DType::kInt64:
        return fill_with(context, static_cast<int64_t>(value));
      case DType::kInt32:
        return fill_with(context, static_cast<int32_t>(value));
      case DType::kUInt8:
        return fill_with(context, static_cast<uint8_t>(value));
      default:
        return cuda::dispatch(context.outputs[0].dtype, [&](auto type) {
          return fill_with(context, cuda::from_float<decltype(type)>(static_cast<float>(value)));
        });
    }
  };
}

}  // namespace fleet
