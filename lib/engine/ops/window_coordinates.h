// The values of the operation window_coordinates, for every backend.
#pragma once

#include <cstdint>
#include <vector>

namespace fleet {

// [(2 h - 1) (2 w - 1), 2], for a window of h x w.
std::vector<float> window_coordinates(const std::vector<int64_t>& window);

}  // namespace fleet
