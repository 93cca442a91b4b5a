// Initial values of parameters and states.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/program.h"

namespace fleet {

// The initial values of a variable, row-major: they depend on (seed, name) only, so that every rank
// draws the same. Generator: splitmix64; normal deviates by Box and Muller.
std::vector<float> initial_values(const Var& var, uint64_t seed);

}  // namespace fleet
