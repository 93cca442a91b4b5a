// Sums over all elements of one or many tensors: first per chunk, then over the chunks in order.
// For .cu files.
#pragma once

#include "backend/cuda/tables.h"

namespace fleet::cuda {

struct Summand {
  const void* data;
  DType dtype;
};

template <typename F, typename T>
__device__ inline float chunk_sum(F function, const T* x, int64_t count) {
  float sum = 0;
  const int64_t whole = count / kPack<T> * kPack<T>;
  for (int64_t i = threadIdx.x * kPack<T>; i < whole; i += kBlock * kPack<T>) {
    const auto values = load_floats<kPack<T>>(x, i);
#pragma unroll
    for (int k = 0; k < kPack<T>; ++k) sum += function(values.at[k]);
  }
  for (int64_t i = whole + threadIdx.x; i < count; i += kBlock) sum += function(to_float(x[i]));
  return block_sum<kBlock>(sum);
}

template <typename F>
__global__ void sum_chunks(const Chunk* chunks, const Summand* summands, F function,
                           float* partial) {
  const Chunk chunk = chunks[blockIdx.x];
  const Summand& x = summands[chunk.tensor];
  float sum = 0;
  switch (x.dtype) {
    case DType::kFloat16:
      sum = chunk_sum(function, static_cast<const __half*>(x.data) + chunk.begin, chunk.count);
      break;
    case DType::kBFloat16:
      sum =
          chunk_sum(function, static_cast<const __nv_bfloat16*>(x.data) + chunk.begin, chunk.count);
      break;
    default:
      sum = chunk_sum(function, static_cast<const float*>(x.data) + chunk.begin, chunk.count);
  }
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

template <typename T>
__global__ void sum_partial(const float* partial, int64_t count, float factor, T* total) {
  float sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += kBlock) sum += partial[i];
  sum = block_sum<kBlock>(sum);
  if (threadIdx.x == 0) *total = from_float<T>(sum * factor);
}

// Accepts every input in its own layout: padding holds zeros, which add nothing if F maps 0 to 0.
inline void reduce_layouts(LayoutQuery& query) {
  int64_t chunks = 0;
  for (int i = 0; i < query.input_count(); ++i) {
    if (query.input(i) && !query.input(i)->is_opaque()) query.need(i, *query.input(i));
    chunks += chunks_of(query.needed(i).elements());
  }
  query.workspace(static_cast<size_t>(chunks) * sizeof(float));
}

// Output 0 = factor * the sum of function(x) over all elements of all inputs, of any types.
template <typename F>
std::unique_ptr<Kernel> reduce_kernel(KernelContext& context, F function, float factor) {
  std::vector<Chunk> chunks;
  std::vector<Summand> summands;
  for (const Argument& input : context.inputs) {
    FLEET_CHECK(is_floating(input.dtype) && input.dtype != DType::kFloat64,
                "a sum needs float32 or a 16-bit type");
    append_chunks(chunks, static_cast<int32_t>(summands.size()), input.layout.elements());
    summands.push_back({input.data, input.dtype});
  }
  const Table<Chunk> chunk_table(context.device, chunks);
  const Table<Summand> summand_table(context.device, summands);
  float* partial = static_cast<float*>(context.workspace);
  const Argument out = context.outputs[0];
  return dispatch(out.dtype, [&](auto type) {
    using T = decltype(type);
    return make_kernel([=](Stream& stream) {
      launch(sum_chunks<F>, blocks_for(chunk_table.size(), 1), kBlock, 0, stream_of(stream),
             chunk_table.data(), summand_table.data(), function, partial);
      launch(sum_partial<T>, 1, kBlock, 0, stream_of(stream), partial, chunk_table.size(), factor,
             out.as<T>());
    });
  });
}

}  // namespace fleet::cuda
