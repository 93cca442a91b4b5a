// The values of the operation window_coordinates, for every backend.
#pragma once

#include <vector>

#include "graph/program.h"

namespace fleet {

// [(2 h - 1) (2 w - 1), 2], for the attribute window, h x w, on the scale of the attribute
// `trained`.
std::vector<float> window_coordinates(const Attributes& attributes);

}  // namespace fleet
