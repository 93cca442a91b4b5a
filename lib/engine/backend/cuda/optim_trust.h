// Updates whose size depends on sums over a whole parameter (LARS, LAMB), in three launches for any
// number of parameters: sums of chunks, sums of parameters, updates. For .cu files.
#pragma once

#include "backend/cuda/optim_update.h"

namespace fleet::cuda {

struct TrustSums {
  float first, second;
};

// The range of a parameter's chunks among all chunks.
struct ChunkRange {
  int32_t begin, end;
};

// The layouts of updates, and memory for the sums of chunks and of parameters.
inline void trust_layouts(LayoutQuery& query) {
  update_layouts(query);
  const UpdateGroups groups(*query.op().def, query.op().inputs.size());
  int64_t sums = groups.count;
  for (int k = 0; k < groups.count; ++k) {
    sums += chunks_of(query.needed(groups.parameter(k)).elements());
  }
  query.workspace(static_cast<size_t>(sums) * sizeof(TrustSums));
}

// Adds up the rule's measure(p, g, s0, s1, sums) over a chunk. It may change the states.
template <typename Rule, typename G>
__global__ void measure_chunks(const Chunk* chunks, const UpdatedTensor* tensors,
                               UpdateScalars scalars, Rule rule, TrustSums* partial) {
  if (scalars.found_inf && *scalars.found_inf != 0) return;
  const auto constants = rule.at(scalars.scale ? *scalars.scale : 1.0f);
  const Chunk chunk = chunks[blockIdx.x];
  const UpdatedTensor tensor = tensors[chunk.tensor];
  TrustSums sums{0, 0};
  for (int i = static_cast<int>(threadIdx.x); i < chunk.count; i += kBlock) {
    const int64_t at = chunk.begin + i;
    float states[kMaxStates] = {};
    for (int s = 0; s < Rule::kStates; ++s) states[s] = tensor.states[s][at];
    constants.measure(tensor.parameter[at], to_float(static_cast<const G*>(tensor.gradient)[at]),
                      states[0], states[1], sums);
    for (int s = 0; s < Rule::kStates; ++s) tensor.states[s][at] = states[s];
  }
  const float first = block_sum<kBlock>(sums.first);
  const float second = block_sum<kBlock>(sums.second);
  if (threadIdx.x == 0) partial[blockIdx.x] = {first, second};
}

// One block per parameter. The order of summation does not depend on other parameters in the
// operation.
inline __global__ void sum_measures(const ChunkRange* ranges, const TrustSums* partial,
                                    TrustSums* totals) {
  const ChunkRange range = ranges[blockIdx.x];
  TrustSums sums{0, 0};
  for (int i = range.begin + static_cast<int>(threadIdx.x); i < range.end; i += kBlock) {
    sums.first += partial[i].first;
    sums.second += partial[i].second;
  }
  const float first = block_sum<kBlock>(sums.first);
  const float second = block_sum<kBlock>(sums.second);
  if (threadIdx.x == 0) totals[blockIdx.x] = {first, second};
}

// Calls the constants' update(p, g, s0, s1, rate) with the result of rate_of(learning rate, sums).
template <typename Rule, typename G>
__global__ void update_measured(const Chunk* chunks, const UpdatedTensor* tensors,
                                UpdateScalars scalars, DType copy_type, Rule rule,
                                const TrustSums* totals) {
  const bool skipped = scalars.found_inf && *scalars.found_inf != 0;
  const auto constants = rule.at(scalars.scale ? *scalars.scale : 1.0f);
  const Chunk chunk = chunks[blockIdx.x];
  const UpdatedTensor tensor = tensors[chunk.tensor];
  if (skipped && !tensor.copy) return;
  const float rate = skipped ? 0 : rule.rate_of(*scalars.rate, totals[chunk.tensor]);
  for (int i = static_cast<int>(threadIdx.x); i < chunk.count; i += kBlock) {
    const int64_t at = chunk.begin + i;
    float parameter = tensor.parameter[at];
    if (!skipped) {
      float states[kMaxStates] = {};
      for (int s = 0; s < Rule::kStates; ++s) states[s] = tensor.states[s][at];
      constants.update(parameter, to_float(static_cast<const G*>(tensor.gradient)[at]), states[0],
                       states[1], rate);
      tensor.parameter[at] = parameter;
      for (int s = 0; s < Rule::kStates; ++s) tensor.states[s][at] = states[s];
    }
    if (!tensor.copy) continue;
    if (copy_type == DType::kFloat16) {
      static_cast<__half*>(tensor.copy)[at] = from_float<__half>(parameter);
    } else {
      static_cast<__nv_bfloat16*>(tensor.copy)[at] = from_float<__nv_bfloat16>(parameter);
    }
  }
}

template <typename Rule>
std::unique_ptr<Kernel> trust_kernel(KernelContext& context, Rule rule) {
  const UpdateTables tables(context);
  std::vector<ChunkRange> ranges;
  for (const Chunk& chunk : tables.host_chunks) {
    if (static_cast<size_t>(chunk.tensor) == ranges.size()) {
      ranges.push_back({ranges.empty() ? 0 : ranges.back().end, 0});
      ranges.back().end = ranges.back().begin;
    }
    ++ranges.back().end;
  }
  const Table<ChunkRange> range_table(context.device, ranges);
  auto* partial = static_cast<TrustSums*>(context.workspace);
  TrustSums* totals = partial + tables.chunks.size();
  return dispatch(tables.gradient_type, [&](auto type) {
    using G = decltype(type);
    return make_kernel([=](Stream& stream) {
      const auto blocks = blocks_for(tables.chunks.size(), 1);
      launch(measure_chunks<Rule, G>, blocks, kBlock, 0, stream_of(stream), tables.chunks.data(),
             tables.tensors.data(), tables.scalars, rule, partial);
      launch(sum_measures, blocks_for(range_table.size(), 1), kBlock, 0, stream_of(stream),
             range_table.data(), partial, totals);
      launch(update_measured<Rule, G>, blocks, kBlock, 0, stream_of(stream), tables.chunks.data(),
             tables.tensors.data(), tables.scalars, tables.copy_type, rule, totals);
    });
  });
}

}  // namespace fleet::cuda
