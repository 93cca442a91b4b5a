#include <cmath>

#include "backend/cuda/sort_ids.h"
#include "backend/cuda/types.h"

namespace fleet {
namespace {

// One pack of a row per thread. An id that is not a row cannot stop the step as on the CPU: its row
// of y is NaN, which makes it visible.
template <int pack, typename Id, typename T>
__global__ void gather_rows(int64_t count, int64_t size, int64_t rows, const Id* ids,
                            const T* weight, T* y) {
  const int64_t at = cuda::thread_index() * pack;
  if (at >= count) return;
  const int64_t i = cuda::quotient(at, size), column = at - i * size;
  const auto id = static_cast<int64_t>(ids[i]);
  if (id >= 0 && id < rows) {
    cuda::store_pack<pack>(y, at, cuda::load_pack<pack>(weight, id * size + column));
    return;
  }
  for (int k = 0; k < pack; ++k) y[at + k] = cuda::from_float<T>(NAN);
}

// Like gather_rows(), with the sum of the rows of `pool` ids in order; an id of -1 is none.
template <int pack, typename Id, typename T>
__global__ void sum_gathered_rows(int64_t count, int64_t size, int64_t rows, int64_t pool,
                                  const Id* ids, const T* weight, T* y) {
  const int64_t at = cuda::thread_index() * pack;
  if (at >= count) return;
  const int64_t place = cuda::quotient(at, size), column = at - place * size;
  cuda::Pack<float, pack> sum{};
  for (int64_t k = 0; k < pool; ++k) {
    const auto id = static_cast<int64_t>(ids[place * pool + k]);
    if (id == -1) continue;
    const bool known = id >= 0 && id < rows;
    const auto row = cuda::load_floats<pack>(weight, (known ? id * size : 0) + column);
#pragma unroll
    for (int j = 0; j < pack; ++j) sum.at[j] += known ? row.at[j] : NAN;
  }
  cuda::store_floats<pack>(y, at, sum);
}

constexpr int kRunColumns = 32, kRunLanes = 8;  // packs of columns, and rows summed side by side

// The first position after `begin` with another id.
__device__ inline int64_t end_of_run(int64_t count, const uint32_t* ids, int64_t begin) {
  const uint32_t id = ids[begin];
  int64_t step = 1;
  while (begin + step < count && ids[begin + step] == id) step *= 2;
  int64_t in = begin + step / 2, out = begin + step < count ? begin + step : count;
  while (out - in > 1) {
    const int64_t middle = in + (out - in) / 2;
    (ids[middle] == id ? in : out) = middle;
  }
  return out;
}

// Blocks of an id's first position sum the rows of dy at all its positions, in order. slots: null,
// or the sums go to the row of their block in dweight, and their ids to `slots`, which is -1.
// Position p reads row p / pool of dy.
template <int pack, typename T>
__global__ void sum_rows_by_id(int64_t count, int64_t size, int64_t rows, int64_t pool,
                               cuda::SortedIds sorted, const T* dy, T* dweight, int64_t* slots) {
  const int64_t begin = blockIdx.x;
  const uint32_t id = sorted.ids[begin];
  if (id >= rows || (begin > 0 && sorted.ids[begin - 1] == id)) return;
  if (slots && blockIdx.y == 0 && threadIdx.x == 0 && threadIdx.y == 0) slots[begin] = id;
  const int64_t end = end_of_run(count, sorted.ids, begin);
  __shared__ float sums[kRunLanes][kRunColumns * pack];
  const int64_t column = (static_cast<int64_t>(blockIdx.y) * kRunColumns + threadIdx.x) * pack;
  cuda::Pack<float, pack> sum{};
  if (column < size) {
#pragma unroll 4
    for (int64_t k = begin + threadIdx.y; k < end; k += kRunLanes) {
      const int64_t place = cuda::quotient(sorted.positions[k], pool);
      const auto values = cuda::load_floats<pack>(dy, place * size + column);
#pragma unroll
      for (int j = 0; j < pack; ++j) sum.at[j] += values.at[j];
    }
  }
#pragma unroll
  for (int j = 0; j < pack; ++j) sums[threadIdx.y][threadIdx.x * pack + j] = sum.at[j];
  cuda::block_barrier();
  if (threadIdx.y != 0 || column >= size) return;
  for (int lane = 1; lane < kRunLanes; ++lane) {
#pragma unroll
    for (int j = 0; j < pack; ++j) sum.at[j] += sums[lane][threadIdx.x * pack + j];
  }
  cuda::store_floats<pack>(dweight, (slots ? begin : id) * size + column, sum);
}

template <typename T, typename Id>
std::unique_ptr<Kernel> make_row_gather(const KernelContext& context) {
  const Argument ids = context.inputs[0], weight = context.inputs[1], y = context.outputs[0];
  const int64_t rows = weight.shape[0], size = weight.shape[1], count = y.shape.elements();
  constexpr int kWide = cuda::kPack<T>;
  const bool wide = size % kWide == 0;
  if (context.attributes().boolean("pooled")) {
    const int64_t pool = ids.shape[ids.shape.rank() - 1];
    return make_kernel([=](Stream& stream) {
      cuda::launch(wide ? sum_gathered_rows<kWide, Id, T> : sum_gathered_rows<1, Id, T>,
                   cuda::blocks_for(count, wide ? cuda::kBlock * kWide : cuda::kBlock),
                   cuda::kBlock, 0, cuda::stream_of(stream), count, size, rows, pool,
                   ids.as<const Id>(), weight.as<const T>(), y.as<T>());
    });
  }
  return make_kernel([=](Stream& stream) {
    cuda::launch(wide ? gather_rows<kWide, Id, T> : gather_rows<1, Id, T>,
                 cuda::blocks_for(count, wide ? cuda::kBlock * kWide : cuda::kBlock), cuda::kBlock,
                 0, cuda::stream_of(stream), count, size, rows, ids.as<const Id>(),
                 weight.as<const T>(), y.as<T>());
  });
}

// sparse: the outputs are rows and values, else the whole gradient.
template <typename T>
std::unique_ptr<Kernel> make_row_sums(const KernelContext& context, bool sparse) {
  const Argument ids = context.inputs[0], dy = context.inputs[1];
  const Argument dweight = context.outputs[sparse ? 1 : 0], slots = context.outputs[0];
  const int64_t rows = context.attributes().integer("rows");
  const int64_t size = dweight.shape[1], count = ids.shape.elements();
  const bool pooled = context.attributes().boolean("pooled");
  const int64_t pool = pooled ? ids.shape[ids.shape.rank() - 1] : 1;
  const int64_t ignored = context.attributes().integer("padding_idx");
  void* workspace = context.workspace;
  constexpr int kWide = cuda::kPack<T>;
  const bool wide = size % kWide == 0;
  const dim3 grid(cuda::blocks_for(count, 1),
                  cuda::blocks_for(size, wide ? kRunColumns * kWide : kRunColumns));
  return make_kernel([=](Stream& handle) {
    const cudaStream_t stream = cuda::stream_of(handle);
    const cuda::SortedIds sorted = cuda::sort_ids(stream, ids, rows, ignored, workspace);
    cuda::check(cudaMemsetAsync(dweight.data, 0, dweight.bytes(), stream), "cudaMemsetAsync");
    if (sparse) {
      cuda::check(cudaMemsetAsync(slots.data, 0xff, slots.bytes(), stream), "cudaMemsetAsync");
    }
    cuda::launch(wide ? sum_rows_by_id<kWide, T> : sum_rows_by_id<1, T>, grid,
                 dim3(kRunColumns, kRunLanes), 0, stream, count, size, rows, pool, sorted,
                 dy.as<const T>(), dweight.as<T>(), sparse ? slots.as<int64_t>() : nullptr);
  });
}

void define_row_sums(KernelDef& def, bool sparse) {
  def.dtypes = cuda::floating_types();
  def.layouts = [](LayoutQuery& query) {
    query.workspace(cuda::sort_workspace(query.input_var(0).shape.elements()));
  };
  def.create = [sparse](KernelContext& context) {
    FLEET_CHECK(context.inputs[0].shape.elements() < INT32_MAX &&
                    context.attributes().integer("rows") < INT32_MAX,
                "too many ids");
    return cuda::dispatch(context.inputs[1].dtype, [&](auto type) {
      return make_row_sums<decltype(type)>(context, sparse);
    });
  };
}

}  // namespace

FLEET_KERNEL(cuda, embedding) {
  def.dtypes = cuda::floating_types();
  def.create = [](KernelContext& context) {
    return cuda::dispatch(context.outputs[0].dtype, [&](auto type) {
      using T = decltype(type);
      return context.inputs[0].dtype == DType::kInt32 ? make_row_gather<T, int32_t>(context)
                                                      : make_row_gather<T, int64_t>(context);
    });
  };
}

FLEET_KERNEL(cuda, embedding_grad) { define_row_sums(def, /*sparse=*/false); }
FLEET_KERNEL(cuda, embedding_grad_rows) { define_row_sums(def, /*sparse=*/true); }

}  // namespace fleet
