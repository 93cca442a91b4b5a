// Updates of many parameters in one launch: code that the kernels of all update rules share. For
// .cu files.
#pragma once

#include <cstring>
#include <type_traits>
#include <utility>

#include "backend/cuda/tables.h"
#include "optim/stochastic_rounding.h"
#include "optim/update_rule.h"

namespace fleet::cuda {

// One parameter with its gradient, states and copy; all in one layout. Parameter and states are
// float, or __nv_bfloat16 with a key.
template <int count>
struct UpdatedTensor {
  void* parameter;
  const void* gradient;
  void* copy;                           // null: none
  void* states[count > 0 ? count : 1];  // an array has at least one element
  uint64_t key;                         // for stochastic rounding
};

// Scalars of this step, in device memory.
struct UpdateScalars {
  const float *rate, *scale;  // scale: null means 1
  const int32_t* found_inf;   // null: never skipped
  const int64_t* step;        // null for parameters in float
};

__device__ inline uint32_t float_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

// Writes `pack` elements of type P from `at` on: of the parameter (value 0) or state value - 1.
template <int pack, typename P>
__device__ inline void store_rounded(void* memory, int64_t at, const Pack<float, pack>& values,
                                     uint64_t key, const int64_t* step, int value) {
  if constexpr (std::is_same_v<P, float>) {
    store_pack<pack>(static_cast<float*>(memory), at, values);
  } else {
    const uint64_t stream = rounding_stream(key, *step, value);
    Pack<uint16_t, pack> narrow;
#pragma unroll
    for (int i = 0; i < pack; ++i) {
      const uint64_t draw = rounding_draw(stream, static_cast<uint64_t>(at + i));
      const auto random = static_cast<uint32_t>(draw >> rounding_shift(value)) & 0xffffu;
      narrow.at[i] = static_cast<uint16_t>(round_to_bfloat16(float_bits(values.at[i]), random));
    }
    store_pack<pack>(static_cast<uint16_t*>(memory), at, narrow);
  }
}

// `pack` elements from `at` on. s: the numbers of the states. skipped: write the copy only.
template <int pack, typename P, typename G, typename Constants, int count, size_t... s>
__device__ inline void update_pack(const UpdatedTensor<count>& tensor, int64_t at, DType copy_type,
                                   const Constants& constants, bool skipped, const int64_t* step,
                                   std::index_sequence<s...>) {
  Pack<float, pack> parameter = load_floats<pack>(static_cast<const P*>(tensor.parameter), at);
  if (!skipped) {
    const auto gradient = load_floats<pack>(static_cast<const G*>(tensor.gradient), at);
    // The last one is for rules without states: an array has at least one element.
    Pack<float, pack> states[] = {load_floats<pack>(static_cast<const P*>(tensor.states[s]), at)...,
                                  {}};
#pragma unroll
    for (int i = 0; i < pack; ++i) {
      constants.update(parameter.at[i], gradient.at[i], states[s].at[i]...);
    }
    store_rounded<pack, P>(tensor.parameter, at, parameter, tensor.key, step, 0);
    (store_rounded<pack, P>(tensor.states[s], at, states[s], tensor.key, step,
                            1 + static_cast<int>(s)),
     ...);
  }
  if (!tensor.copy) return;
  if (copy_type == DType::kFloat16) {
    store_floats<pack>(static_cast<__half*>(tensor.copy), at, parameter);
  } else {
    store_floats<pack>(static_cast<__nv_bfloat16*>(tensor.copy), at, parameter);
  }
}

// One block per chunk. For a rule of optim/update_rule.h.
template <typename Rule, typename P, typename G>
__global__ void update_chunks(const Chunk* chunks, const UpdatedTensor<Rule::kStates>* tensors,
                              UpdateScalars scalars, DType copy_type, Rule rule) {
  const bool skipped = scalars.found_inf && *scalars.found_inf != 0;
  const auto constants = rule.at(*scalars.rate, scalars.scale ? *scalars.scale : 1.0f);
  const Chunk chunk = chunks[blockIdx.x];
  const UpdatedTensor<Rule::kStates> tensor = tensors[chunk.tensor];
  if (skipped && !tensor.copy) return;
  constexpr std::make_index_sequence<Rule::kStates> states;
  constexpr int kWide = 4;
  const int whole = chunk.count / kWide * kWide;
  for (int i = static_cast<int>(threadIdx.x) * kWide; i < whole; i += kBlock * kWide) {
    update_pack<kWide, P, G>(tensor, chunk.begin + i, copy_type, constants, skipped, scalars.step,
                             states);
  }
  for (int i = whole + static_cast<int>(threadIdx.x); i < chunk.count; i += kBlock) {
    update_pack<1, P, G>(tensor, chunk.begin + i, copy_type, constants, skipped, scalars.step,
                         states);
  }
}

// The tables that a launch over all parameters of an update operation with `count` states reads.
template <int count>
struct UpdateTables {
  explicit UpdateTables(KernelContext& context)
      : UpdateTables(context, UpdateGroups(*context.op.def, context.op.inputs.size())) {}

  std::vector<Chunk> host_chunks;
  Table<Chunk> chunks;
  Table<UpdatedTensor<count>> tensors;
  UpdateScalars scalars;
  DType stored, gradient_type, copy_type;

 private:
  UpdateTables(KernelContext& context, const UpdateGroups& groups)
      : host_chunks(chunks_of_all(context, groups)),
        chunks(context.device, host_chunks),
        tensors(context.device, tensors_of(context, groups)),
        scalars{.rate = context.inputs[kUpdateLearningRate].as<const float>(),
                .scale = context.inputs[kUpdateGradientScale].as<const float>(),
                .found_inf = context.inputs[kUpdateFoundInf].as<const int32_t>(),
                .step = context.inputs[kUpdateStep].as<const int64_t>()},
        stored(context.inputs[groups.parameter(0)].dtype),
        gradient_type(context.inputs[groups.gradient(0)].dtype),
        copy_type(context.outputs[groups.copy(0)].dtype) {}

  static std::vector<Chunk> chunks_of_all(const KernelContext& context,
                                          const UpdateGroups& groups) {
    std::vector<Chunk> all;
    for (int k = 0; k < groups.count; ++k) {
      append_chunks(all, k, context.inputs[groups.parameter(k)].layout.elements());
    }
    return all;
  }
  static std::vector<UpdatedTensor<count>> tensors_of(const KernelContext& context,
                                                      const UpdateGroups& groups) {
    FLEET_CHECK(groups.states() == count,
                context.op.type() + ": the cuda kernel is for " + std::to_string(count) +
                    " states, the operation has " + std::to_string(groups.states()));
    const Attributes& attributes = context.attributes();
    const bool rounds = attributes.has(kRoundingKeys);
    std::vector<UpdatedTensor<count>> all;
    for (int k = 0; k < groups.count; ++k) {
      const int64_t key = rounds ? attributes.integers(kRoundingKeys)[k] : 0;
      UpdatedTensor<count> tensor{.parameter = context.inputs[groups.parameter(k)].data,
                                  .gradient = context.inputs[groups.gradient(k)].data,
                                  .copy = context.outputs[groups.copy(k)].data,
                                  .states = {},
                                  .key = static_cast<uint64_t>(key)};
      for (int s = 0; s < count; ++s) {
        tensor.states[s] = context.inputs[groups.state(k, s)].data;
      }
      all.push_back(tensor);
    }
    return all;
  }
};

// Calls body(P(), G()) with the types of parameters and gradients. kUnsupported for bfloat16
// parameters with float16 gradients.
template <typename Body>
auto dispatch_update(DType stored, DType gradient, Body body) {
  if (stored == DType::kFloat32) {
    return dispatch(gradient, [&](auto type) { return body(float(), type); });
  }
  if (gradient == DType::kFloat16) {
    throw Error(ErrorCode::kUnsupported, "no cuda kernel for bfloat16 with gradients in float16");
  }
  return gradient == DType::kFloat32 ? body(__nv_bfloat16(), float())
                                     : body(__nv_bfloat16(), __nv_bfloat16());
}

template <typename Rule>
std::unique_ptr<Kernel> update_kernel(KernelContext& context) {
  const UpdateTables<Rule::kStates> tables(context);
  const auto rule = rule_of<Rule>(context);
  return dispatch_update(tables.stored, tables.gradient_type, [&](auto stored, auto gradient) {
    using P = decltype(stored);
    using G = decltype(gradient);
    return make_kernel([=](Stream& stream) {
      launch(update_chunks<Rule, P, G>, blocks_for(tables.chunks.size(), 1), kBlock, 0,
             stream_of(stream), tables.chunks.data(), tables.tensors.data(), tables.scalars,
             tables.copy_type, rule);
    });
  });
}
template <typename Rule>
void define_update(KernelDef& def) {
  def.layouts = update_layouts<LayoutQuery>;
  def.create = update_kernel<Rule>;
}

}  // namespace fleet::cuda
