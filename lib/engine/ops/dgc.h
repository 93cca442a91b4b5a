// The groups of dgc_select's inputs and outputs, and the layouts that it shares with dgc_apply.
#pragma once

#include "graph/program.h"

namespace fleet {

struct DgcGroups {
  static constexpr int kInputs = 5;   // parameter, gradient, velocity, residual, scale
  static constexpr int kTensors = 4;  // the first inputs, which have the parameter's shape
  explicit DgcGroups(int inputs) : count(inputs / kInputs) {}
  int count;  // number of parameters
  static int parameter(int i) { return i * kInputs; }
  static int gradient(int i) { return parameter(i) + 1; }
  static int velocity(int i) { return parameter(i) + 2; }
  static int residual(int i) { return parameter(i) + 3; }
  static int scale(int i) { return parameter(i) + 4; }  // may be absent
  // Indices of the outputs after `encoded`.
  static int velocity_out(int i) { return 1 + 2 * i; }
  static int residual_out(int i) { return 2 + 2 * i; }

  // For kernels: each group uses one layout, the first that any of its tensors has. Query:
  // LayoutQuery.
  template <typename Query>
  static void lay_out(Query& query) {
    for (int i = 0; i < DgcGroups(query.input_count()).count; ++i) {
      auto common = query.input(parameter(i));
      for (int member = 1; member < kTensors && !common; ++member) {
        common = query.input(parameter(i) + member);
      }
      if (!common || common->is_opaque()) continue;
      for (int member = 0; member < kTensors; ++member) query.need(parameter(i) + member, *common);
      query.give(velocity_out(i), *common);
      query.give(residual_out(i), *common);
    }
  }
};

// For kernels of dgc_apply: parameters in the layouts that lay_out() chooses.
template <typename Query>
void lay_out_parameters(Query& query) {
  for (int i = 2; i < query.input_count(); ++i) {
    const auto& layout = query.input(i);
    if (!layout || layout->is_opaque()) continue;
    query.need(i, *layout);
    query.give(i - 2, *layout);
  }
}

}  // namespace fleet
