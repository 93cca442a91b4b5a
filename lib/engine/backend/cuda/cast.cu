#include <type_traits>

#include "backend/cuda/copies.h"
#include "backend/cuda/elementwise.h"

namespace fleet {
namespace {

template <typename T>
constexpr bool kIsFloating = !std::is_integral_v<T> && !std::is_same_v<T, double>;

template <typename To, typename From>
__device__ To converted(From x) {
  if constexpr (kIsFloating<From> && kIsFloating<To>) {
    return cuda::from_float<To>(cuda::to_float(x));
  } else if constexpr (kIsFloating<From>) {
    return static_cast<To>(cuda::to_float(x));
  } else if constexpr (kIsFloating<To>) {
    return cuda::from_float<To>(static_cast<float>(x));
  } else {
    return static_cast<To>(x);
  }
}

template <int pack, typename From, typename To>
__global__ void convert(const From* x, To* y, int64_t count) {
  const int64_t begin = cuda::thread_index() * pack;
  if (begin + pack <= count) {
    const cuda::Pack<From, pack> from = cuda::load_pack<pack>(x, begin);
    cuda::Pack<To, pack> to;
#pragma unroll
    for (int i = 0; i < pack; ++i) to.at[i] = converted<To>(from.at[i]);
    cuda::store_pack<pack>(y, begin, to);
    return;
  }
  for (int64_t i = begin; i < count; ++i) y[i] = converted<To>(x[i]);
}

template <typename Body>
auto with_type(DType dtype, Body body) {
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
      return cuda::dispatch(dtype, body);
  }
}

}  // namespace

FLEET_KERNEL(cuda, cast) {
  def.dtypes = cuda::any_types();
  def.layouts = cuda::keep_layout;
  def.create = [](KernelContext& context) {
    const Argument x = context.inputs[0], y = context.outputs[0];
    return with_type(x.dtype, [&](auto from) {
      return with_type(y.dtype, [&](auto to) {
        using From = decltype(from);
        using To = decltype(to);
        constexpr int kWide = std::max(cuda::kPack<From>, cuda::kPack<To>) > 8
                                  ? 8
                                  : std::max(cuda::kPack<From>, cuda::kPack<To>);
        const int64_t count = y.layout.elements();
        return make_kernel([=](Stream& stream) {
          cuda::launch(convert<kWide, From, To>,
                       cuda::blocks_for(count, int64_t{cuda::kBlock} * kWide), cuda::kBlock, 0,
                       cuda::stream_of(stream), x.as<const From>(), y.as<To>(), count);
        });
      });
    });
  };
}

}  // namespace fleet
