// Windows of an image's tokens (Liu et al., Swin Transformer, 2021), for the operations window_*.
#pragma once

#include <cstdint>

#include "base/cpu.h"
#include "graph/program.h"

namespace fleet {

// An image of grid_rows * height x grid_columns * width places, cut into windows. Before, it is
// rolled by `shift`: place (0, 0) of the first window is place (shift_down, shift_right) of the
// image, and what leaves at one side comes in at the other.
struct ImageWindows {
  int64_t grid_rows = 1, grid_columns = 1, height = 1, width = 1, shift_down = 0, shift_right = 0;

  FLEET_INLINE int64_t count() const { return grid_rows * grid_columns; }
  FLEET_INLINE int64_t tokens() const { return height * width; }  // per window
  FLEET_INLINE int64_t rows() const { return grid_rows * height; }
  FLEET_INLINE int64_t columns() const { return grid_columns * width; }
  FLEET_INLINE bool shifted() const { return shift_down + shift_right > 0; }
  // The place in the image, row by row, of a token of a window.
  FLEET_INLINE int64_t place(int64_t window, int64_t token) const {
    int64_t y = window / grid_columns * height + token / width + shift_down;
    int64_t x = window % grid_columns * width + token % width + shift_right;
    if (y >= rows()) y -= rows();
    if (x >= columns()) x -= columns();
    return y * columns() + x;
  }
  // Tokens see those of their own region: in a rolled image, neighbours may come from opposite
  // sides.
  FLEET_INLINE int64_t region(int64_t window, int64_t token) const {
    const int64_t y = window / grid_columns * height + token / width;
    const int64_t x = window % grid_columns * width + token % width;
    return 3 * region_along(y, rows(), height, shift_down) +
           region_along(x, columns(), width, shift_right);
  }
  // Offsets between two tokens of a window, and the one of a query and a key, row by row.
  FLEET_INLINE int64_t offsets() const { return (2 * height - 1) * (2 * width - 1); }
  FLEET_INLINE int64_t offset(int64_t query, int64_t key) const {
    const int64_t y = query / width - key / width + height - 1;
    const int64_t x = query % width - key % width + width - 1;
    return y * (2 * width - 1) + x;
  }

 private:
  static FLEET_INLINE int64_t region_along(int64_t at, int64_t size, int64_t window,
                                           int64_t shift) {
    if (shift == 0 || at < size - window) return 0;
    return at < size - shift ? 1 : 2;
  }
};

// Added to a score between different regions, as in the authors' network.
inline constexpr float kOtherRegion = -100;

// The attributes grid, window and shift, each of height and width.
std::map<std::string, Attribute> image_windows_attributes();
ImageWindows image_windows(const Attributes& attributes);
// kUsage unless they are lists of two, sizes are positive, and shifts within a window.
void require_image_windows(ShapeContext& context);

}  // namespace fleet
