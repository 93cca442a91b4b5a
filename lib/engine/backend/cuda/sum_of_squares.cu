#include "backend/cuda/reduce.h"
#include "ops/partial_squares.h"

namespace fleet {
namespace {

struct Square {
  __device__ float operator()(float x) const { return x * x; }
};

// A block for each part. Within a part, sums are in float32.
template <typename T>
__global__ void square_parts(const T* x, int64_t count, double* parts) {
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * kSquaresPart;
  const int64_t rest = count - begin;
  const float sum = cuda::chunk_sum(Square(), x + begin, rest < kSquaresPart ? rest : kSquaresPart);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

__global__ void add_parts(const double* parts, int64_t count, float* out) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += parts[i];
  *out = static_cast<float>(sum);
}

}  // namespace

FLEET_KERNEL(cuda, sum_of_squares) {
  def.dtypes = cuda::floating_types();
  def.layouts = cuda::reduce_layouts;
  def.create = [](KernelContext& context) { return cuda::reduce_kernel(context, Square(), 1); };
}

FLEET_KERNEL(cuda, partial_squares) {
  def.dtypes = cuda::floating_types();
  def.create = [](KernelContext& context) {
    const Argument x = context.inputs[0];
    double* parts = context.outputs[0].as<double>();
    const int64_t count = x.shape.elements();
    return cuda::dispatch(x.dtype, [&](auto type) {
      using T = decltype(type);
      return make_kernel([=](Stream& stream) {
        cuda::launch(square_parts<T>, cuda::blocks_for(count, kSquaresPart), cuda::kBlock, 0,
                     cuda::stream_of(stream), x.as<const T>(), count, parts);
      });
    });
  };
}

FLEET_KERNEL(cuda, sum_partials) {
  def.dtypes = {DType::kFloat64};
  def.create = [](KernelContext& context) {
    const double* parts = context.inputs[0].as<const double>();
    const int64_t count = context.inputs[0].shape.elements();
    float* out = context.outputs[0].as<float>();
    return make_kernel([=](Stream& stream) {
      cuda::launch(add_parts, 1, 1, 0, cuda::stream_of(stream), parts, count, out);
    });
  };
}

}  // namespace fleet
