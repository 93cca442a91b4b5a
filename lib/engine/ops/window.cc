#include "ops/window.h"

#include <algorithm>

namespace fleet {
namespace {

bool all_from(const std::vector<int64_t>& values, int64_t least) {
  return std::all_of(values.begin(), values.end(), [&](int64_t value) { return value >= least; });
}

bool is_pair_from(const std::vector<int64_t>& values, int64_t least) {
  return values.size() == 2 && all_from(values, least);
}

}  // namespace

Window window_of(const Attributes& attributes, int64_t kernel_height, int64_t kernel_width) {
  Window window{.kernel = {kernel_height, kernel_width}};
  for (int d = 0; d < 2; ++d) {
    window.strides[d] = attributes.integers("strides")[d];
    const std::vector<int64_t>& paddings = attributes.integers("paddings");
    window.paddings[d] = paddings[d];
    window.ends[d] = paddings[paddings.size() == 4 ? 2 + d : d];
    window.dilations[d] = attributes.has("dilations") ? attributes.integers("dilations")[d] : 1;
  }
  return window;
}

Window window_of(const ShapeContext& context, int64_t kernel_height, int64_t kernel_width,
                 bool ends) {
  const Attributes& attributes = context.attributes();
  context.require(kernel_height >= 1 && kernel_width >= 1, "the kernel must be at least 1 x 1");
  context.require(is_pair_from(attributes.integers("strides"), 1),
                  "strides must be two integers of at least 1");
  const std::vector<int64_t>& paddings = attributes.integers("paddings");
  context.require(
      is_pair_from(paddings, 0) || (ends && paddings.size() == 4 && all_from(paddings, 0)),
      std::string("paddings must be two ") + (ends ? "or four " : "") + "integers of at least 0");
  if (attributes.has("dilations")) {
    context.require(is_pair_from(attributes.integers("dilations"), 1),
                    "dilations must be two integers of at least 1");
  }
  const Window window = window_of(attributes, kernel_height, kernel_width);
  for (int d = 0; d < 2 && paddings.size() == 4; ++d) {  // oneDNN 2.6 crashes otherwise (AMX)
    context.require(std::max(window.paddings[d], window.ends[d]) < window.extent(d),
                    "each of four paddings must be smaller than the window");
  }
  return window;
}

int64_t windows(const Window& window, int d, int64_t size) {
  const int64_t room = size + window.paddings[d] + window.ends[d] - window.extent(d);
  return room < 0 ? 0 : room / window.strides[d] + 1;
}

int64_t windows_rounded_up(const Window& window, int d, int64_t size) {
  const int64_t room = size + window.paddings[d] + window.ends[d] - window.extent(d);
  if (room < 0) return 0;
  int64_t count = (room + window.strides[d] - 1) / window.strides[d] + 1;
  if ((count - 1) * window.strides[d] >= size + window.paddings[d]) --count;
  return count;
}

}  // namespace fleet
