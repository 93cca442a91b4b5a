#include "ops/image_windows.h"

namespace fleet {

std::map<std::string, Attribute> image_windows_attributes() {
  using Integers = std::vector<int64_t>;
  return {{"grid", Integers{1, 1}}, {"window", Integers{1, 1}}, {"shift", Integers{0, 0}}};
}

ImageWindows image_windows(const Attributes& attributes) {
  const std::vector<int64_t>&grid = attributes.integers("grid"),
        &window = attributes.integers("window"), &shift = attributes.integers("shift");
  return {.grid_rows = grid[0],
          .grid_columns = grid[1],
          .height = window[0],
          .width = window[1],
          .shift_down = shift[0],
          .shift_right = shift[1]};
}

void require_image_windows(ShapeContext& context) {
  const Attributes& attributes = context.attributes();
  for (const char* name : {"grid", "window", "shift"}) {
    context.require(attributes.integers(name).size() == 2,
                    std::string(name) + " is not a list of a height and a width");
  }
  for (size_t d = 0; d < 2; ++d) {
    const int64_t window = attributes.integers("window")[d],
                  shift = attributes.integers("shift")[d];
    context.require(attributes.integers("grid")[d] > 0 && window > 0,
                    "grid and window must be positive");
    context.require(shift >= 0 && shift < window, "a shift of " + std::to_string(shift) +
                                                      " is not within a window of " +
                                                      std::to_string(window));
  }
}

}  // namespace fleet
