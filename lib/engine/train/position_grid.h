// Learned positions for other sizes: those for the patches of a vision transformer's images, and
// those for the offsets within the windows of a Swin Transformer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fleet {

enum class PositionRule {
  kTimm,         // bicubic with a = -0.5, antialiased
  kTorchvision,  // bicubic with a = -0.75 between the corners, not antialiased
  // Of the authors of DINOv2: bicubic with a = -0.75, not antialiased, and the new grid counts as
  // 0.1 larger.
  kMeta,
};

struct PositionGrid {
  int64_t height = 0, width = 0;
  bool operator==(const PositionGrid&) const = default;
};

// table: rows of `width` values: `prefix` rows of other tokens, which stay, then those of the grid,
// row by row. Returns the table for the other grid, equal to PyTorch's to float's precision.
std::vector<float> resized_positions(std::span<const float> table, int64_t prefix, int64_t width,
                                     const PositionGrid& from, const PositionGrid& to,
                                     PositionRule rule);

enum class OffsetRule {
  kTimm,       // linear between knots that lie ever further apart
  kMicrosoft,  // bicubic with a = -0.75, not antialiased, as the authors of Swin do
};

// table: the biases of `heads` heads for each offset between two tokens of a window, row by row:
// [(2 height - 1) (2 width - 1), heads]. Returns the table for another window.
std::vector<float> resized_offsets(std::span<const float> table, int64_t heads,
                                   const PositionGrid& from, const PositionGrid& to,
                                   OffsetRule rule);

}  // namespace fleet
