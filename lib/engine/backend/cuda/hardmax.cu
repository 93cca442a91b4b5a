#include "backend/cuda/rows.h"
#include "exec/kernel.h"

namespace fleet {
namespace {

template <typename T>
struct HardmaxRow {
  const T* x;
  T* y;
  int64_t columns;
  template <int threads>
  __device__ void operator()(cuda::RowThreads<threads> row_threads, int64_t n) const {
    const T* row = x + n * columns;
    float largest = cuda::Max::kIdentity;
    for (int64_t c = row_threads.first(); c < columns; c += threads) {
      largest = cuda::Max::of(largest, cuda::to_float(row[c]));
    }
    largest = row_threads.max(largest);
    // The first of equal ones: the maximum of the distances to the end, exact up to 2^24.
    float distance = 0;
    for (int64_t c = row_threads.first(); c < columns; c += threads) {
      if (cuda::to_float(row[c]) != largest) continue;
      distance = cuda::Max::of(distance, static_cast<float>(columns - c));
    }
    const int64_t first = columns - static_cast<int64_t>(row_threads.max(distance));
    for (int64_t c = row_threads.first(); c < columns; c += threads) {
      y[n * columns + c] = cuda::from_float<T>(c == first ? 1 : 0);
    }
  }
};

}  // namespace

FLEET_KERNEL(cuda, hardmax) {
  def.dtypes = cuda::floating_types();
  def.create = [](KernelContext& context) {
    const Argument x = context.inputs[0], y = context.outputs[0];
    return cuda::dispatch(x.dtype, [&](auto type) {
      using T = decltype(type);
      const int64_t columns = x.shape[x.shape.rank() - 1];
      const HardmaxRow<T> row{x.as<const T>(), y.as<T>(), columns};
      return make_kernel([=, rows = x.shape.elements() / columns](Stream& stream) {
        cuda::launch_rows(cuda::stream_of(stream), rows, columns, row);
      });
    });
  };
}

}  // namespace fleet
