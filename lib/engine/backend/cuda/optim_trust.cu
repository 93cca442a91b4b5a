// Updates whose rate depends on sums over a whole parameter (optim/trust_rules.h), in three
// launches for any number of parameters: sums of chunks, sums of parameters, updates.
#include "backend/cuda/optim_update.h"
#include "optim/trust_rules.h"

namespace fleet {
namespace cuda {
namespace {

using TrustSums = TrustTerms;

// The range of a parameter's chunks among all chunks.
struct ChunkRange {
  int32_t begin, end;
};

// The layouts of updates, and memory for the sums of chunks and of parameters.
void trust_layouts(LayoutQuery& query) {
  update_layouts(query);
  const UpdateGroups groups(*query.op().def, query.op().inputs.size());
  int64_t sums = groups.count;
  for (int k = 0; k < groups.count; ++k) {
    sums += chunks_of(query.needed(groups.parameter(k)).elements());
  }
  query.workspace(static_cast<size_t>(sums) * sizeof(TrustSums));
}

template <typename P>
__device__ inline float load_value(const void* memory, int64_t at) {
  return to_float(static_cast<const P*>(memory)[at]);
}
// value: as of store_rounded().
template <typename P, int count>
__device__ inline void store_value(const UpdatedTensor<count>& tensor, int64_t at, float x,
                                   const int64_t* step, int value) {
  void* memory = value == 0 ? tensor.parameter : tensor.states[value - 1];
  store_rounded<1, P>(memory, at, {{x}}, tensor.key, step, value);
}

// One element. s: the numbers of the states.
template <typename P, typename Constants, int count, size_t... s>
__device__ inline void measure_element(const UpdatedTensor<count>& tensor, int64_t at,
                                       float gradient, const Constants& constants,
                                       const int64_t* step, TrustSums& sums,
                                       std::index_sequence<s...>) {
  // 0: an array has at least one element
  float states[] = {load_value<P>(tensor.states[s], at)..., 0};
  const float parameter = load_value<P>(tensor.parameter, at);
  const TrustTerms terms = constants.measure(parameter, gradient, states[s]...);
  sums.first += terms.first;
  sums.second += terms.second;
  (store_value<P>(tensor, at, states[s], step, 1 + static_cast<int>(s)), ...);
}

// Returns the new parameter.
template <typename P, typename Constants, int count, size_t... s>
__device__ inline float update_element(const UpdatedTensor<count>& tensor, int64_t at,
                                       float gradient, const Constants& constants, float rate,
                                       const int64_t* step, std::index_sequence<s...>) {
  float parameter = load_value<P>(tensor.parameter, at);
  float states[] = {load_value<P>(tensor.states[s], at)..., 0};
  constants.update(parameter, gradient, rate, states[s]...);
  store_value<P>(tensor, at, parameter, step, 0);
  (store_value<P>(tensor, at, states[s], step, 1 + static_cast<int>(s)), ...);
  return parameter;
}

// Adds up measure() of the rule's constants over a chunk.
template <typename Rule, typename P, typename G>
__global__ void measure_chunks(const Chunk* chunks, const UpdatedTensor<Rule::kStates>* tensors,
                               UpdateScalars scalars, Rule rule, TrustSums* partial) {
  if (scalars.found_inf && *scalars.found_inf != 0) return;
  const auto constants = rule.at(scalars.scale ? *scalars.scale : 1.0f);
  const Chunk chunk = chunks[blockIdx.x];
  const UpdatedTensor<Rule::kStates> tensor = tensors[chunk.tensor];
  TrustSums sums{0, 0};
  for (int i = static_cast<int>(threadIdx.x); i < chunk.count; i += kBlock) {
    const int64_t at = chunk.begin + i;
    measure_element<P>(tensor, at, load_value<G>(tensor.gradient, at), constants, scalars.step,
                       sums, std::make_index_sequence<Rule::kStates>());
  }
  const float first = block_sum<kBlock>(sums.first);
  const float second = block_sum<kBlock>(sums.second);
  if (threadIdx.x == 0) partial[blockIdx.x] = {first, second};
}

// One block per parameter. The order of summation does not depend on other parameters in the
// operation.
__global__ void sum_measures(const ChunkRange* ranges, const TrustSums* partial,
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

template <typename Rule, typename P, typename G>
__global__ void update_measured(const Chunk* chunks, const UpdatedTensor<Rule::kStates>* tensors,
                                UpdateScalars scalars, DType copy_type, Rule rule,
                                const TrustSums* totals) {
  const bool skipped = scalars.found_inf && *scalars.found_inf != 0;
  const auto constants = rule.at(scalars.scale ? *scalars.scale : 1.0f);
  const Chunk chunk = chunks[blockIdx.x];
  const UpdatedTensor<Rule::kStates> tensor = tensors[chunk.tensor];
  if (skipped && !tensor.copy) return;
  const TrustSums sums = totals[chunk.tensor];
  const float rate = skipped ? 0 : rule.rate_of(*scalars.rate, sums.first, sums.second);
  for (int i = static_cast<int>(threadIdx.x); i < chunk.count; i += kBlock) {
    const int64_t at = chunk.begin + i;
    float parameter = load_value<P>(tensor.parameter, at);
    if (!skipped) {
      parameter = update_element<P>(tensor, at, load_value<G>(tensor.gradient, at), constants, rate,
                                    scalars.step, std::make_index_sequence<Rule::kStates>());
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
std::unique_ptr<Kernel> trust_kernel(KernelContext& context) {
  const UpdateTables<Rule::kStates> tables(context);
  const auto rule = rule_of<Rule>(context);
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
  return dispatch_update(tables.stored, tables.gradient_type, [&](auto stored, auto gradient) {
    using P = decltype(stored);
    using G = decltype(gradient);
    return make_kernel([=](Stream& stream) {
      const auto blocks = blocks_for(tables.chunks.size(), 1);
      launch(measure_chunks<Rule, P, G>, blocks, kBlock, 0, stream_of(stream), tables.chunks.data(),
             tables.tensors.data(), tables.scalars, rule, partial);
      launch(sum_measures, blocks_for(range_table.size(), 1), kBlock, 0, stream_of(stream),
             range_table.data(), partial, totals);
      launch(update_measured<Rule, P, G>, blocks, kBlock, 0, stream_of(stream),
             tables.chunks.data(), tables.tensors.data(), tables.scalars, tables.copy_type, rule,
             totals);
    });
  });
}

}  // namespace
}  // namespace cuda

FLEET_KERNEL(cuda, lamb) {
  def.layouts = cuda::trust_layouts;
  def.create = cuda::trust_kernel<LambRule<float>>;
}

FLEET_KERNEL(cuda, lars) {
  def.layouts = cuda::trust_layouts;
  def.create = cuda::trust_kernel<LarsRule<float>>;
}

}  // namespace fleet
