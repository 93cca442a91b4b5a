#include <cmath>

#include "backend/cuda/tables.h"
#include "ops/rope_frequencies.h"

namespace fleet {
namespace {

// One block per row: its own frequencies, by its largest position.
template <typename Id>
__global__ void stretch_frequencies(const Id* positions, int64_t length, DynamicRope rope,
                                    const float* usual, float* own) {
  __shared__ int32_t longest;
  if (threadIdx.x == 0) longest = 0;
  cuda::block_barrier();
  int32_t largest = 0;
  for (int64_t s = threadIdx.x; s < length; s += cuda::kBlock) {
    const auto position = static_cast<int32_t>(positions[blockIdx.x * length + s]);
    largest = position > largest ? position : largest;
  }
  cuda::atomic_max(&longest, largest);
  cuda::block_barrier();
  const int64_t pairs = rope.dim / 2, reach = static_cast<int64_t>(longest) + 1;
  const double base = rope.base(reach);
  for (int64_t i = threadIdx.x; i < pairs; i += cuda::kBlock) {
    own[blockIdx.x * pairs + i] =
        reach <= rope.original ? usual[i] : rope_frequency(base, i, rope.dim);
  }
}

// One thread per pair of a position. row: elements of cos per row, if each has its own frequencies;
// otherwise 0.
template <typename Id>
__global__ void fill_table(int64_t count, int64_t pairs, int64_t row, const Id* positions,
                           const float* frequencies, float factor, float* cos, float* sin) {
  const int64_t i = cuda::thread_index();
  if (i >= count) return;
  const int64_t position = cuda::quotient(i, pairs), pair = i - position * pairs;
  const int64_t from = row == 0 ? 0 : cuda::quotient(i, row) * pairs;
  const float angle = static_cast<float>(positions[position]) * frequencies[from + pair];
  cos[i] = cosf(angle) * factor;
  sin[i] = sinf(angle) * factor;
}

template <typename Id>
std::unique_ptr<Kernel> make_rope_table(KernelContext& context) {
  const Argument positions = context.inputs[0];
  const RopeSettings settings(context.attributes());
  const cuda::Table<float> usual(context.device, settings.frequencies());
  const DynamicRope rope = settings.dynamic();
  const bool dynamic = settings.is_dynamic();
  const float factor = settings.attention_factor();
  const int64_t rows = positions.shape[0], length = positions.shape[1], pairs = settings.dim / 2;
  float* own = static_cast<float*>(context.workspace);
  float* cos = context.outputs[0].as<float>();
  float* sin = context.outputs[1].as<float>();
  return make_kernel([=](Stream& handle) {
    const cudaStream_t stream = cuda::stream_of(handle);
    const Id* at = positions.as<const Id>();
    if (dynamic) {
      cuda::launch(stretch_frequencies<Id>, cuda::blocks_for(rows, 1), cuda::kBlock, 0, stream, at,
                   length, rope, usual.data(), own);
    }
    const int64_t count = rows * length * pairs;
    cuda::launch(fill_table<Id>, cuda::blocks_for(count), cuda::kBlock, 0, stream, count, pairs,
                 dynamic ? length * pairs : int64_t{0}, at, dynamic ? own : usual.data(), factor,
                 cos, sin);
  });
}

}  // namespace

FLEET_KERNEL(cuda, rope_table) {
  def.layouts = [](LayoutQuery& query) {
    const Shape& table = query.output_var(0).shape;
    query.workspace(static_cast<size_t>(table[0] * table[2]) * sizeof(float));
  };
  def.create = [](KernelContext& context) {
    return context.inputs[0].dtype == DType::kInt32 ? make_rope_table<int32_t>(context)
                                                    : make_rope_table<int64_t>(context);
  };
}

}  // namespace fleet
