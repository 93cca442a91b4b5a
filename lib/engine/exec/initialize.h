// Initial values of parameters and states.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/program.h"

namespace fleet {

// Draws the initial values of a variable, row-major, into `values`, which has one entry per
// element. They depend on (seed, name) only, so that every rank draws the same. Generator:
// splitmix64; normal deviates by Box-Muller. Thread-safe.
void draw_initial_values(const Var& var, uint64_t seed, std::span<float> values);
std::vector<float> initial_values(const Var& var, uint64_t seed);

}  // namespace fleet
