// window_coordinates: the input of the network that computes the biases of Swin Transformer V2 (Liu
// et al. 2022): for each offset between two tokens of a window, its height and width c = 8 offset /
// (trained - 1) on a logarithmic scale, sign(c) log2(1 + |c|) / 3. float32 [(2 window[0] - 1) (2
// window[1] - 1), 2]. `trained` is the window that the network was trained with before this one.
#include "ops/window_coordinates.h"

#include <algorithm>
#include <cmath>

#include "ops/mixed_precision.h"

namespace fleet {

std::vector<float> window_coordinates(const Attributes& attributes) {
  const std::vector<int64_t>&window = attributes.integers("window"),
        &trained = attributes.integers("trained");
  // A window of one token has no offset but 0.
  const auto scaled = [](int64_t offset, int64_t own, int64_t before) {
    const int64_t size = std::max<int64_t>(before > 0 ? before : own, 2);
    const double c = 8.0 * static_cast<double>(offset) / static_cast<double>(size - 1);
    return static_cast<float>(std::copysign(std::log2(1 + std::abs(c)) / 3, c));
  };
  std::vector<float> values;
  for (int64_t y = 1 - window[0]; y < window[0]; ++y) {
    for (int64_t x = 1 - window[1]; x < window[1]; ++x) {
      values.push_back(scaled(y, window[0], trained[0]));
      values.push_back(scaled(x, window[1], trained[1]));
    }
  }
  return values;
}

FLEET_OP(window_coordinates) {
  def.help =
      "the offsets between tokens of a window, row by row, each as height and width c = 8 offset / "
      "(trained - 1) on a logarithmic scale: sign(c) log2(1 + |c|) / 3; [(2 window[0] - 1) (2 "
      "window[1] - 1), 2]; `trained` is the window of an earlier training, 0 for the same one";
  def.outputs = {{"out"}};
  def.attributes = {{"window", std::vector<int64_t>{2, 2}},
                    {"trained", std::vector<int64_t>{0, 0}}};
  // Operations on a constant may run in any type.
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.infer = [](ShapeContext& context) {
    const std::vector<int64_t>& window = context.attributes().integers("window");
    context.require(window.size() == 2 && window[0] > 0 && window[1] > 0,
                    "window must be a height and a width of at least 1");
    const std::vector<int64_t>& trained = context.attributes().integers("trained");
    context.require(trained.size() == 2 && trained[0] >= 0 && trained[1] >= 0,
                    "trained must be a height and a width, or 0");
    context.set(0, {(2 * window[0] - 1) * (2 * window[1] - 1), 2}, DType::kFloat32);
  };
}

}  // namespace fleet
