#include "backend/cuda/types.h"
#include "exec/kernel.h"

namespace fleet {
namespace {

struct RopeExtent {
  int64_t heads, rotated, size, half;  // `rotated` heads; pairs i and half + i of each
};

// One thread per pack of pairs; y may be x.
// sign: -1 rotates back.
template <int pack, typename T>
__global__ void rotate_pairs(int64_t count, RopeExtent e, const T* x, const float* cos,
                             const float* sin, float sign, T* y) {
  const int64_t i = cuda::thread_index() * pack;
  if (i >= count) return;
  const int64_t head = cuda::quotient(i, e.half), pair = i - head * e.half;  // head of all tokens'
  const int64_t token = cuda::quotient(head, e.rotated), own = head - token * e.rotated;
  const int64_t first = (token * e.heads + own) * e.size + pair, angle = token * e.half + pair;
  auto a = cuda::load_floats<pack>(x, first), b = cuda::load_floats<pack>(x, first + e.half);
#pragma unroll
  for (int k = 0; k < pack; ++k) {
    const float c = cos[angle + k], s = sin[angle + k] * sign, before = a.at[k];
    a.at[k] = before * c - b.at[k] * s;
    b.at[k] = b.at[k] * c + before * s;
  }
  cuda::store_floats<pack>(y, first, a);
  cuda::store_floats<pack>(y, first + e.half, b);
}

// One thread per element: those of heads that are not rotated, and behind the pairs of a head.
template <typename T>
__global__ void copy_unrotated(int64_t count, RopeExtent e, const T* x, T* y) {
  const int64_t i = cuda::thread_index();
  if (i >= count) return;
  const int64_t head = cuda::quotient(i, e.size), at = i - head * e.size;
  if (cuda::remainder_of(head, e.heads) >= e.rotated || at >= 2 * e.half) y[i] = x[i];
}

template <typename T>
std::unique_ptr<Kernel> make_rotation(KernelContext& context, float sign) {
  const Argument x = context.inputs[0], y = context.outputs[0];
  const int64_t given = context.attributes().integer("heads");
  const RopeExtent extent{.heads = x.shape[2],
                          .rotated = given == 0 ? x.shape[2] : given,
                          .size = x.shape[3],
                          .half = context.inputs[1].shape[2]};
  const float* cos = context.inputs[1].as<const float>();
  const float* sin = context.inputs[2].as<const float>();
  constexpr int kWide = cuda::kPack<T>;
  const bool wide = extent.half % kWide == 0 && extent.size % kWide == 0;
  const bool copies =
      x.data != y.data && (extent.rotated < extent.heads || 2 * extent.half < extent.size);
  const int64_t all = x.shape.elements();
  const int64_t pairs = x.shape[0] * x.shape[1] * extent.rotated * extent.half;
  return make_kernel([=](Stream& handle) {
    const cudaStream_t stream = cuda::stream_of(handle);
    const auto kernel = wide ? rotate_pairs<kWide, T> : rotate_pairs<1, T>;
    cuda::launch(kernel, cuda::blocks_for(pairs, wide ? cuda::kBlock * kWide : cuda::kBlock),
                 cuda::kBlock, 0, stream, pairs, extent, x.as<const T>(), cos, sin, sign,
                 y.as<T>());
    if (!copies) return;
    cuda::launch(copy_unrotated<T>, cuda::blocks_for(all), cuda::kBlock, 0, stream, all, extent,
                 x.as<const T>(), y.as<T>());
  });
}

}  // namespace

FLEET_KERNEL(cuda, rope) {
  def.dtypes = cuda::floating_types();
  def.create = [](KernelContext& context) {
    return cuda::dispatch(context.inputs[0].dtype,
                          [&](auto type) { return make_rotation<decltype(type)>(context, 1); });
  };
}

FLEET_KERNEL(cuda, rope_grad) {
  def.dtypes = cuda::floating_types();
  def.create = [](KernelContext& context) {
    return cuda::dispatch(context.inputs[0].dtype,
                          [&](auto type) { return make_rotation<decltype(type)>(context, -1); });
  };
}

}  // namespace fleet
