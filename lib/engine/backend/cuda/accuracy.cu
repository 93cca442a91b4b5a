#include "backend/cuda/rows.h"
#include "exec/kernel.h"

namespace fleet {
namespace {

constexpr float kNoRank = 3e38f;

// The number of classes ranked before the label's: larger, or equal with a smaller index.
template <typename T>
struct RankRow {
  const T* logits;
  const int64_t* label;
  int64_t classes;
  float* ranks;
  template <int threads>
  __device__ void operator()(cuda::RowThreads<threads> row_threads, int64_t row) const {
    const int64_t own_class = label[row];
    const T* x = logits + row * classes;
    const bool is_class = own_class >= 0 && own_class < classes;
    const float own = is_class ? cuda::to_float(x[own_class]) : 0;
    float before = 0;  // exact up to 2^24
    for (int64_t c = row_threads.first(); is_class && c < classes; c += threads) {
      const float other = cuda::to_float(x[c]);
      before += other > own || (other == own && c < own_class) ? 1 : 0;
    }
    before = row_threads.sum(before);
    if (row_threads.first() == 0) ranks[row] = is_class && own == own ? before : kNoRank;
  }
};

__global__ void count_hits(const float* ranks, const float* weight, int64_t samples, float k,
                           float* counts) {
  float first = 0, among = 0, total = 0;
  for (int64_t n = threadIdx.x; n < samples; n += cuda::kBlock) {
    total += weight[n];
    if (ranks[n] == 0) first += weight[n];
    if (ranks[n] < k) among += weight[n];
  }
  first = cuda::block_sum<cuda::kBlock>(first);
  among = cuda::block_sum<cuda::kBlock>(among);
  total = cuda::block_sum<cuda::kBlock>(total);
  if (threadIdx.x != 0) return;
  counts[0] = first;
  counts[1] = among;
  counts[2] = total;
}

}  // namespace

FLEET_KERNEL(cuda, accuracy) {
  def.dtypes = cuda::floating_types();
  def.layouts = [](LayoutQuery& query) {
    query.workspace(static_cast<size_t>(query.input_var(1).shape.elements()) * sizeof(float));
  };
  def.create = [](KernelContext& context) {
    const Argument x = context.inputs[0], weight = context.inputs[2];
    const int64_t* label = context.inputs[1].as<const int64_t>();
    const int64_t classes = x.shape[x.shape.rank() - 1], samples = x.shape.elements() / classes;
    const auto k = static_cast<float>(context.attributes().integer("k"));
    float* counts = context.outputs[0].as<float>();
    float* ranks = static_cast<float*>(context.workspace);
    FLEET_CHECK(weight.dtype == DType::kFloat32, "weights of samples are float32");
    return cuda::dispatch(x.dtype, [&](auto type) {
      using T = decltype(type);
      return make_kernel([=](Stream& stream) {
        cuda::launch_rows(cuda::stream_of(stream), samples, classes,
                          RankRow<T>{x.as<const T>(), label, classes, ranks});
        cuda::launch(count_hits, 1, cuda::kBlock, 0, cuda::stream_of(stream), ranks,
                     weight.as<const float>(), samples, k, counts);
      });
    });
  };
}

}  // namespace fleet
