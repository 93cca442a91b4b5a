// window_coordinates: the input of the network that computes the biases of Swin Transformer V2 (Liu
// et al. 2022): for each offset between two tokens of a window, its height and width c = 8 offset /
// (window - 1) on a logarithmic scale, sign(c) log2(1 + |c|) / 3. float32 [(2 window[0] - 1) (2
// window[1] - 1), 2].
#include "ops/window_coordinates.h"

#include <cmath>

#include "graph/program.h"
#include "ops/mixed_precision.h"

namespace fleet {

std::vector<float> window_coordinates(const std::vector<int64_t>& window) {
  const auto scaled = [](int64_t offset, int64_t size) {
    const double c = 8.0 * static_cast<double>(offset) / static_cast<double>(size - 1);
    return static_cast<float>(std::copysign(std::log2(1 + std::abs(c)) / 3, c));
  };
  std::vector<float> values;
  for (int64_t y = 1 - window[0]; y < window[0]; ++y) {
    for (int64_t x = 1 - window[1]; x < window[1]; ++x) {
      values.push_back(scaled(y, window[0]));
      values.push_back(scaled(x, window[1]));
    }
  }
  return values;
}

FLEET_OP(window_coordinates) {
  def.help =
      "the offsets between tokens of a window, row by row, each as height and width c = 8 offset / "
      "(window - 1) on a logarithmic scale: sign(c) log2(1 + |c|) / 3; [(2 window[0] - 1) (2 "
      "window[1] - 1), 2]";
  def.outputs = {{"out"}};
  def.attributes = {{"window", std::vector<int64_t>{2, 2}}};
  // Operations on a constant may run in any type.
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.infer = [](ShapeContext& context) {
    const std::vector<int64_t>& window = context.attributes().integers("window");
    context.require(window.size() == 2 && window[0] > 1 && window[1] > 1,
                    "window must be a height and a width of at least 2");
    context.set(0, {(2 * window[0] - 1) * (2 * window[1] - 1), 2}, DType::kFloat32);
  };
}

}  // namespace fleet
