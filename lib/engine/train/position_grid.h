// Positions of a vision transformer for images of another size.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fleet {

enum class PositionRule {
  kTimm,         // bicubic with a = -0.5, antialiased
  kTorchvision,  // bicubic with a = -0.75 between the corners, not antialiased
};

struct PositionGrid {
  int64_t height = 0, width = 0;
};

// table: rows of `width` values: `prefix` rows of other tokens, which stay, then those of the grid,
// row by row. Returns the table for the other grid, equal to PyTorch's to float's precision.
std::vector<float> resized_positions(std::span<const float> table, int64_t prefix, int64_t width,
                                     const PositionGrid& from, const PositionGrid& to,
                                     PositionRule rule);

}  // namespace fleet
