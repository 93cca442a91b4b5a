#include <cmath>

#include "backend/cuda/types.h"
#include "exec/kernel.h"

namespace fleet {
namespace {

struct RowSizes {
  int64_t reads, rows, size;  // M, S, H
};

// One pack of a row of y a thread. A wrong index cannot stop the step as on the CPU: its row is
// NaN, which makes it visible.
template <int pack, typename T>
__global__ void gather_sample_rows(int64_t count, RowSizes sizes, const int64_t* index, const T* x,
                                   T* y) {
  const int64_t at = cuda::thread_index() * pack;
  if (at >= count) return;
  const int64_t read = cuda::quotient(at, sizes.size), column = at - read * sizes.size;
  const int64_t sample = cuda::quotient(read, sizes.reads), row = index[read];
  if (row >= 0 && row < sizes.rows) {
    const int64_t from = (sample * sizes.rows + row) * sizes.size + column;
    cuda::store_pack<pack>(y, at, cuda::load_pack<pack>(x, from));
    return;
  }
  for (int k = 0; k < pack; ++k) y[at + k] = cuda::from_float<T>(NAN);
}

// One pack of a row of dx a thread, which looks for the reads of its row, in order.
template <int pack, typename T>
__global__ void sum_read_rows(int64_t count, RowSizes sizes, const int64_t* index, const T* dy,
                              T* dx) {
  const int64_t at = cuda::thread_index() * pack;
  if (at >= count) return;
  const int64_t line = cuda::quotient(at, sizes.size), column = at - line * sizes.size;
  const int64_t sample = cuda::quotient(line, sizes.rows), row = line - sample * sizes.rows;
  cuda::Pack<float, pack> sum{};
  const int64_t first = sample * sizes.reads;
#pragma unroll 4
  for (int64_t read = first; read < first + sizes.reads; ++read) {
    if (index[read] != row) continue;
    const auto values = cuda::load_floats<pack>(dy, read * sizes.size + column);
#pragma unroll
    for (int k = 0; k < pack; ++k) sum.at[k] += values.at[k];
  }
  cuda::store_floats<pack>(dx, at, sum);
}

// `wide` and `single` are the kernel for packs and for single elements of T.
template <typename T, typename Function>
std::unique_ptr<Kernel> make_row_kernel(Function wide, Function single, RowSizes sizes,
                                        const Argument& index, const Argument& from,
                                        const Argument& to) {
  constexpr int kWide = cuda::kPack<T>;
  const bool packs =
      sizes.size % kWide == 0 && cuda::is_aligned(from.data) && cuda::is_aligned(to.data);
  const int64_t count = to.shape.elements();
  return make_kernel([=](Stream& stream) {
    cuda::launch(packs ? wide : single,
                 cuda::blocks_for(count, packs ? cuda::kBlock * kWide : cuda::kBlock), cuda::kBlock,
                 0, cuda::stream_of(stream), count, sizes, index.as<const int64_t>(),
                 from.as<const T>(), to.as<T>());
  });
}

}  // namespace

FLEET_KERNEL(cuda, gather_rows) {
  def.dtypes = cuda::floating_types();
  def.create = [](KernelContext& context) {
    const Argument &x = context.inputs[0], &index = context.inputs[1], &y = context.outputs[0];
    const RowSizes sizes{index.shape[1], x.shape[1], x.shape[2]};
    return cuda::dispatch(y.dtype, [&](auto type) {
      using T = decltype(type);
      return make_row_kernel<T>(gather_sample_rows<cuda::kPack<T>, T>, gather_sample_rows<1, T>,
                                sizes, index, x, y);
    });
  };
}

FLEET_KERNEL(cuda, gather_rows_grad) {
  def.dtypes = cuda::floating_types();
  def.create = [](KernelContext& context) {
    const Argument &index = context.inputs[0], &dy = context.inputs[1], &dx = context.outputs[0];
    const RowSizes sizes{index.shape[1], dx.shape[1], dx.shape[2]};
    return cuda::dispatch(dx.dtype, [&](auto type) {
      using T = decltype(type);
      return make_row_kernel<T>(sum_read_rows<cuda::kPack<T>, T>, sum_read_rows<1, T>, sizes, index,
                                dy, dx);
    });
  };
}

}  // namespace fleet
