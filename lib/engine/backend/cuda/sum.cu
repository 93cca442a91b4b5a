// Sums of several tensors, elementwise, in one pass over memory.
#include <vector>

#include "backend/cuda/elementwise.h"

namespace fleet {
namespace cuda {
namespace {

// Maximum number of addends per launch; more need further launches.
constexpr int kAddends = 8;
template <typename T>
struct Addends {
  const T* at[kAddends];
  int count;
};

// out = where(mask > 0 or NaN) x0 + x1 + ..., one pack per thread; mask may be null. out may be one
// of the addends.
template <int pack, typename T>
__global__ void add_elements(int64_t count, const T* mask, Addends<T> x, T* out) {
  const int64_t begin = thread_index() * pack;
  if (begin >= count) return;
  Pack<float, pack> sum = load_floats<pack>(x.at[0], begin);
  for (int k = 1; k < x.count; ++k) {
    const Pack<float, pack> more = load_floats<pack>(x.at[k], begin);
#pragma unroll
    for (int i = 0; i < pack; ++i) sum.at[i] += more.at[i];
  }
  if (mask != nullptr) {
    const Pack<float, pack> passed = load_floats<pack>(mask, begin);
#pragma unroll
    for (int i = 0; i < pack; ++i) sum.at[i] = passed.at[i] <= 0 ? 0 : sum.at[i];
  }
  store_floats<pack>(out, begin, sum);
}

template <typename T>
void add_all(cudaStream_t stream, int64_t count, const T* mask, const Addends<T>& x, T* out) {
  bool aligned = count % kPack<T> == 0 && is_aligned(out) && (!mask || is_aligned(mask));
  for (int k = 0; k < x.count; ++k) aligned = aligned && is_aligned(x.at[k]);
  if (aligned) {
    launch(add_elements<kPack<T>, T>, blocks_for(count, kBlock * kPack<T>), kBlock, 0, stream,
           count, mask, x, out);
  } else {
    launch(add_elements<1, T>, blocks_for(count), kBlock, 0, stream, count, mask, x, out);
  }
}

// The kernel of output 0 = sum of the inputs from `first` on, masked by input `first` - 1 if
// `masked`. All in one layout. The mask is applied to each launch's sum.
std::unique_ptr<Kernel> sum_kernel(KernelContext& context, size_t first, bool masked) {
  const Argument out = context.outputs[0];
  const std::vector<Argument> inputs(context.inputs.begin(), context.inputs.end());
  return dispatch(out.dtype, [&](auto type) {
    using T = decltype(type);
    // An input that shares the output's memory must be read before the output is written. It is
    // input `first` (OpDef::inplace), so it is in the first launch.
    std::vector<Addends<T>> launches(1, Addends<T>{});
    for (size_t i = first; i < inputs.size(); ++i) {
      if (launches.back().count == kAddends) {
        launches.push_back({.at = {out.as<const T>()}, .count = 1});
      }
      launches.back().at[launches.back().count++] = inputs[i].as<const T>();
    }
    const T* mask = masked ? inputs[first - 1].as<const T>() : nullptr;
    return make_kernel([=](Stream& stream) {
      for (const Addends<T>& x : launches) {
        add_all(stream_of(stream), out.layout.elements(), mask, x, out.as<T>());
      }
    });
  });
}

}  // namespace
}  // namespace cuda

FLEET_KERNEL(cuda, sum) {
  def.dtypes = cuda::floating_types();
  def.layouts = cuda::keep_layout;
  def.create = [](KernelContext& context) {
    return cuda::sum_kernel(context, 0, /*masked=*/false);
  };
}

FLEET_KERNEL(cuda, sum_relu_grad) {
  def.dtypes = cuda::floating_types();
  def.layouts = cuda::keep_layout;
  def.create = [](KernelContext& context) { return cuda::sum_kernel(context, 1, /*masked=*/true); };
}

}  // namespace fleet
