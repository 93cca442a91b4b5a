// The gradients of parameters, as those see them who combine them over ranks.
#pragma once

#include <functional>
#include <vector>

#include "graph/program.h"
#include "passes/buckets.h"

namespace fleet {

struct Gradient {
  VarId parameter;
  VarId var;
  int computed_by;  // index of the operation of the backward pass that writes it last
};

// Of trainable parameters that `concerns` is true of (null: of all), in the order in which the
// backward pass completes them; one that two parameters share is there once. kInternal before the
// backward pass, and where they are summed over ranks already.
std::vector<Gradient> find_gradients(const Program& program,
                                     const std::function<bool(const Var&)>& concerns = {});

// What group_gradients() wants to know of each.
std::vector<GradientSize> sizes_of(const Program& program, const std::vector<Gradient>& gradients);

}  // namespace fleet
