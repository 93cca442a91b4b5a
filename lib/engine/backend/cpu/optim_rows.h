// The kernel of an elementwise rule on single rows of a parameter (optim/row_update.h).
#pragma once

#include <array>
#include <utility>

#include "backend/cpu/elementwise.h"
#include "optim/row_update.h"
#include "optim/update_rule.h"

namespace fleet::cpu {

inline constexpr int64_t kRowLanes = 16;  // floats of the widest vectors
inline constexpr int64_t kFewFloats = 4;  // below this many floats, copies cost more than they gain

// Rows of tables are often shorter than a vector: the rest of a row is copied to a whole one.
template <typename Constants, size_t... s>
static FLEET_SIMD void update_row(float* parameter, const float* gradient, float* const* states,
                                  int64_t count, Constants constants, std::index_sequence<s...>) {
  float* const own[] = {states[s]..., nullptr};  // an array has at least one element
  const int64_t whole = count / kRowLanes * kRowLanes;
#pragma omp simd
  for (int64_t i = 0; i < whole; ++i) constants.update(parameter[i], gradient[i], own[s][i]...);
  if (count - whole < kFewFloats) {
    for (int64_t i = whole; i < count; ++i) {
      constants.update(parameter[i], gradient[i], own[s][i]...);
    }
    return;
  }
  const size_t rest = static_cast<size_t>(count - whole) * sizeof(float);
  float p[kRowLanes] = {}, g[kRowLanes] = {}, of[sizeof...(s) + 1][kRowLanes] = {};
  std::memcpy(p, parameter + whole, rest);
  std::memcpy(g, gradient + whole, rest);
  (std::memcpy(of[s], own[s] + whole, rest), ...);
#pragma omp simd
  for (int64_t i = 0; i < kRowLanes; ++i) constants.update(p[i], g[i], of[s][i]...);
  std::memcpy(parameter + whole, p, rest);
  (std::memcpy(own[s] + whole, of[s], rest), ...);
}

inline constexpr int64_t kSlotsAhead = 8;  // slots

template <typename Rule>
void define_row_update(KernelDef& def) {
  def.create = [](KernelContext& context) {
    const auto input = [&](int i) { return context.inputs[i].as<float>(); };
    const float *rate = input(kUpdateLearningRate), *scale = input(kUpdateGradientScale);
    const int32_t* found_inf = context.inputs[kUpdateFoundInf].as<int32_t>();
    const int64_t* rows = context.inputs[kRowUpdateRows].as<int64_t>();
    const float* values = input(kRowUpdateValues);
    float* parameter = input(kRowUpdateParameter);
    FLEET_CHECK(parameter == context.outputs[0].data, context.op.type() + " works in place");
    std::array<float*, Rule::kStates + 1> states{};
    for (int s = 0; s < Rule::kStates; ++s) states[s] = input(kRowUpdateParameter + 1 + s);
    const int64_t slots = context.inputs[kRowUpdateValues].shape[0];
    const int64_t size = context.inputs[kRowUpdateValues].shape[1];
    return make_kernel([=, rule = rule_of<Rule>(context)](Stream&) {
      if (found_inf && *found_inf != 0) return;
      const auto constants = rule.at(*rate, scale ? *scale : 1);
      const bool parallel = slots * size >= kParallelElements;
      // Rows are far apart: each one is a wait for memory, unless it was requested before.
      const auto request_row = [&](int64_t slot) {
        if (slot >= slots || rows[slot] < 0) return;
        const int64_t at = rows[slot] * size;
        __builtin_prefetch(parameter + at, 1);
        __builtin_prefetch(parameter + at + size - 1, 1);
        for (int s = 0; s < Rule::kStates; ++s) {
          __builtin_prefetch(states[s] + at, 1);
          __builtin_prefetch(states[s] + at + size - 1, 1);
        }
      };
#pragma omp parallel for if (parallel)
      for (int64_t slot = 0; slot < slots; ++slot) {
        request_row(slot + kSlotsAhead);
        if (rows[slot] < 0) continue;
        const int64_t at = rows[slot] * size;
        float* own[Rule::kStates + 1] = {};
        for (int s = 0; s < Rule::kStates; ++s) own[s] = states[s] + at;
        update_row(parameter + at, values + slot * size, own, size, constants,
                   std::make_index_sequence<Rule::kStates>());
      }
    });
  };
}

}  // namespace fleet::cpu
