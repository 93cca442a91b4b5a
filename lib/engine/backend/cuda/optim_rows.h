// The kernel of an elementwise rule on single rows of a parameter (optim/row_update.h). For .cu
// files.
#pragma once

#include <utility>

#include "backend/cuda/optim_update.h"
#include "optim/row_update.h"

namespace fleet::cuda {

template <typename Constants, int count, size_t... s>
__device__ inline void update_value(const UpdatedTensor<count>& tensor, int64_t at, float gradient,
                                    const Constants& constants, std::index_sequence<s...>) {
  float* const states[] = {static_cast<float*>(tensor.states[s])..., nullptr};
  constants.update(static_cast<float*>(tensor.parameter)[at], gradient, states[s][at]...);
}

// One block per slot.
template <typename Rule>
__global__ void update_rows(const int64_t* rows, const float* values, int64_t size,
                            UpdatedTensor<Rule::kStates> tensor, UpdateScalars scalars, Rule rule) {
  if (scalars.found_inf && *scalars.found_inf != 0) return;
  const int64_t row = rows[blockIdx.x];
  if (row < 0) return;
  const auto constants = rule.at(*scalars.rate, scalars.scale ? *scalars.scale : 1.0f);
  const float* gradient = values + blockIdx.x * size;
  for (int64_t i = threadIdx.x; i < size; i += kBlock) {
    update_value(tensor, row * size + i, gradient[i], constants,
                 std::make_index_sequence<Rule::kStates>());
  }
}

template <typename Rule>
void define_row_update(KernelDef& def) {
  def.create = [](KernelContext& context) {
    UpdatedTensor<Rule::kStates> tensor{.parameter = context.inputs[kRowUpdateParameter].data,
                                        .gradient = nullptr,
                                        .copy = nullptr,
                                        .states = {},
                                        .key = 0};
    for (int s = 0; s < Rule::kStates; ++s) {
      tensor.states[s] = context.inputs[kRowUpdateParameter + 1 + s].data;
    }
    const UpdateScalars scalars{.rate = context.inputs[kUpdateLearningRate].as<const float>(),
                                .scale = context.inputs[kUpdateGradientScale].as<const float>(),
                                .found_inf = context.inputs[kUpdateFoundInf].as<const int32_t>(),
                                .step = context.inputs[kUpdateStep].as<const int64_t>()};
    const Argument rows = context.inputs[kRowUpdateRows], values = context.inputs[kRowUpdateValues];
    return make_kernel([=, rule = rule_of<Rule>(context)](Stream& stream) {
      launch(update_rows<Rule>, blocks_for(values.shape[0], 1), kBlock, 0, stream_of(stream),
             rows.as<const int64_t>(), values.as<const float>(), values.shape[1], tensor, scalars,
             rule);
    });
  };
}

}  // namespace fleet::cuda
