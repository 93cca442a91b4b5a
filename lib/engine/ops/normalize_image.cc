// normalize_image: converts images of bytes to network input. With scale = 1 / (255 * std) and bias
// = -mean / std, both float, image[n, c, h, w] = pixels[n, h, w, c] * scale[c] + bias[c]; if
// flip[n] is not 0, every row is mirrored.
//   pixels  uint8 [N, H, W, P]: P = 1 for one channel, 4 for three (RGB and an unused byte)
//   flip    uint8 [N], optional
//   image   [N, C, H, W] in the type `to`; C is the number of means
#include "graph/op.h"
#include "graph/program.h"
#include "ops/mixed_precision.h"

namespace fleet {

FLEET_OP(normalize_image) {
  def.inputs = {{"pixels"}, {"flip", Slot::kOptional}};
  def.outputs = {{"image"}};
  def.attributes = {{"mean", std::vector<double>{0}},
                    {"std", std::vector<double>{1}},
                    {"to", std::string("float32")}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.infer = [](ShapeContext& context) {
    const auto& mean = context.attributes().numbers("mean");
    const auto& deviation = context.attributes().numbers("std");
    const auto channels = static_cast<int64_t>(mean.size());
    context.require(channels == 1 || channels == 3, "an image must have one or three channels");
    context.require(deviation.size() == mean.size(), "mean and std must have the same length");
    for (double value : deviation) context.require(value > 0, "std must be positive");
    const Shape& pixels = context.shape(0);
    context.require(context.dtype(0) == DType::kUInt8 && pixels.rank() == 4,
                    "pixels must be uint8 [N, H, W, P]");
    context.require(pixels[3] == (channels == 1 ? 1 : 4),
                    "one byte per pixel for one channel, four for three channels");
    if (context.has_input(1)) {
      context.require(context.dtype(1) == DType::kUInt8 && context.shape(1) == Shape{pixels[0]},
                      "flip must be uint8 [N]");
    }
    context.set(0, {pixels[0], channels, pixels[1], pixels[2]},
                to_dtype(context.attributes().text("to")));
  };
}

}  // namespace fleet
