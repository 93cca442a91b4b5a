// Updates of many parameters in one launch: code shared by the kernels of sgd, momentum and adam.
// For .cu files.
#pragma once

#include "backend/cuda/tables.h"
#include "optim/update_op.h"

namespace fleet::cuda {

inline constexpr int kMaxStates = 3;

// One parameter with its gradient, states and copy; all in one layout.
struct UpdatedTensor {
  float* parameter;
  const void* gradient;
  float* states[kMaxStates];
  void* copy;  // null: none
};

// Scalars of this step, in device memory.
struct UpdateScalars {
  const float *rate, *scale;  // scale: null means 1
  const int32_t* found_inf;   // null: never skipped
};

// One layout for every group: the first that a member has.
inline void update_layouts(LayoutQuery& query) {
  const UpdateGroups groups(*query.op().def, query.op().inputs.size());
  for (int k = 0; k < groups.count; ++k) {
    std::optional<Layout> common;
    for (int i = 0; i < groups.inputs_each && !common; ++i) {
      common = query.input(groups.parameter(k) + i);
    }
    if (!common || common->is_opaque()) continue;
    for (int i = 0; i < groups.inputs_each; ++i) query.need(groups.parameter(k) + i, *common);
    for (int i = 0; i < groups.outputs_each; ++i) {
      if (query.has_output(groups.output(k) + i)) query.give(groups.output(k) + i, *common);
    }
  }
}

// `pack` elements from `at` on. skipped: write the copy only.
template <int pack, typename G, typename Constants>
__device__ inline void update_pack(const UpdatedTensor& tensor, int64_t at, DType copy_type,
                                   const Constants& constants, bool skipped) {
  Pack<float, pack> parameter = load_pack<pack>(tensor.parameter, at);
  if (!skipped) {
    const auto gradient = load_floats<pack>(static_cast<const G*>(tensor.gradient), at);
    Pack<float, pack> states[kMaxStates] = {};
#pragma unroll
    for (int s = 0; s < Constants::kStates; ++s) states[s] = load_pack<pack>(tensor.states[s], at);
#pragma unroll
    for (int i = 0; i < pack; ++i) {
      if constexpr (requires(float& x) { constants.update(x, x, x, x, x); }) {
        constants.update(parameter.at[i], gradient.at[i], states[0].at[i], states[1].at[i],
                         states[2].at[i]);
      } else {
        constants.update(parameter.at[i], gradient.at[i], states[0].at[i], states[1].at[i]);
      }
    }
    store_pack<pack>(tensor.parameter, at, parameter);
#pragma unroll
    for (int s = 0; s < Constants::kStates; ++s) store_pack<pack>(tensor.states[s], at, states[s]);
  }
  if (!tensor.copy) return;
  if (copy_type == DType::kFloat16) {
    store_floats<pack>(static_cast<__half*>(tensor.copy), at, parameter);
  } else {
    store_floats<pack>(static_cast<__nv_bfloat16*>(tensor.copy), at, parameter);
  }
}

// One block per chunk. Rule::at(rate, scale) returns the Constants of this step, whose update(p, g,
// s0, s1) or update(p, g, s0, s1, s2) changes one element.
template <typename Rule, typename G>
__global__ void update_chunks(const Chunk* chunks, const UpdatedTensor* tensors,
                              UpdateScalars scalars, DType copy_type, Rule rule) {
  const bool skipped = scalars.found_inf && *scalars.found_inf != 0;
  const auto constants = rule.at(*scalars.rate, scalars.scale ? *scalars.scale : 1.0f);
  const Chunk chunk = chunks[blockIdx.x];
  const UpdatedTensor tensor = tensors[chunk.tensor];
  if (skipped && !tensor.copy) return;
  constexpr int kWide = 4;
  const int whole = chunk.count / kWide * kWide;
  for (int i = static_cast<int>(threadIdx.x) * kWide; i < whole; i += kBlock * kWide) {
    update_pack<kWide, G>(tensor, chunk.begin + i, copy_type, constants, skipped);
  }
  for (int i = whole + static_cast<int>(threadIdx.x); i < chunk.count; i += kBlock) {
    update_pack<1, G>(tensor, chunk.begin + i, copy_type, constants, skipped);
  }
}

// The tables that a launch over all parameters of an update operation reads.
struct UpdateTables {
  explicit UpdateTables(KernelContext& context)
      : UpdateTables(context, UpdateGroups(*context.op.def, context.op.inputs.size())) {}

  std::vector<Chunk> host_chunks;
  Table<Chunk> chunks;
  Table<UpdatedTensor> tensors;
  UpdateScalars scalars;
  DType gradient_type, copy_type;

 private:
  UpdateTables(KernelContext& context, const UpdateGroups& groups)
      : host_chunks(chunks_of_all(context, groups)),
        chunks(context.device, host_chunks),
        tensors(context.device, tensors_of(context, groups)),
        scalars{.rate = context.inputs[kUpdateLearningRate].as<const float>(),
                .scale = context.inputs[kUpdateGradientScale].as<const float>(),
                .found_inf = context.inputs[kUpdateFoundInf].as<const int32_t>()},
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
  static std::vector<UpdatedTensor> tensors_of(const KernelContext& context,
                                               const UpdateGroups& groups) {
    FLEET_CHECK(groups.states() <= kMaxStates, "an update has too many states");
    std::vector<UpdatedTensor> all;
    for (int k = 0; k < groups.count; ++k) {
      UpdatedTensor tensor{.parameter = context.inputs[groups.parameter(k)].as<float>(),
                           .gradient = context.inputs[groups.gradient(k)].data,
                           .states = {},
                           .copy = context.outputs[groups.copy(k)].data};
      for (int s = 0; s < groups.states(); ++s) {
        tensor.states[s] = context.inputs[groups.state(k, s)].as<float>();
      }
      all.push_back(tensor);
    }
    return all;
  }
};

template <typename Rule>
std::unique_ptr<Kernel> update_kernel(KernelContext& context, Rule rule) {
  const UpdateTables tables(context);
  return dispatch(tables.gradient_type, [&](auto type) {
    using G = decltype(type);
    return make_kernel([=](Stream& stream) {
      launch(update_chunks<Rule, G>, blocks_for(tables.chunks.size(), 1), kBlock, 0,
             stream_of(stream), tables.chunks.data(), tables.tensors.data(), tables.scalars,
             tables.copy_type, rule);
    });
  });
}

}  // namespace fleet::cuda
