// The gradients of parameters, for passes that combine them over ranks.
#pragma once

#include <functional>
#include <vector>

#include "graph/program.h"
#include "passes/buckets.h"

namespace fleet {

struct Gradient {
  VarId parameter;
  VarId var;
  int computed_by;  // index of the backward operation that writes it last
};

// The gradients of trainable parameters for which `concerns` is true (null: all), in the order in
// which the backward pass completes them. A gradient that two parameters share is listed once.
// kInternal before the backward pass, and if the gradients are already summed over ranks.
std::vector<Gradient> find_gradients(const Program& program,
                                     const std::function<bool(const Var&)>& concerns = {});

// The input of group_gradients() for each gradient.
std::vector<GradientSize> sizes_of(const Program& program, const std::vector<Gradient>& gradients);

}  // namespace fleet
