// lraspp_mobilenet_v3_large: the Lite R-ASPP of Howard et al. 2019 (MobileNetV3), as torchvision's.
#include "models/segmentation.h"

namespace fleet {
namespace {

constexpr int64_t kWidth = 128;

NamedVars build_lraspp(Network& network, const NamedVars& inputs, const Settings& settings) {
  const VarId image = inputs.at("image");
  const int64_t classes = settings.integer("num_classes");
  const BackboneMaps maps = dilated_mobilenet_maps(network, image);
  VarId x = conv_bn_relu(network, "classifier.cbr.0", "classifier.cbr.1", maps.out,
                         {.channels = kWidth, .kernel = 1});
  const VarId gate =
      network.conv2d("classifier.scale.1", network.global_pool(maps.out),
                     {.channels = kWidth, .kernel = 1, .init = WeightInit::kTorchDefaultNoBias});
  x = network.scale_channels(x, network.activation("sigmoid", gate));
  x = network.block("classifier.cbr", resized_like(network, x, maps.early));
  const VarId low = pixel_classes(network, "classifier.low_classifier", maps.early, classes);
  const VarId high = pixel_classes(network, "classifier.high_classifier", x, classes);
  const VarId sum = network.block("classifier", network.add(low, high));
  return {{"pixel_logits", resized_like(network, sum, image)}};
}

}  // namespace

FLEET_MODEL(lraspp_mobilenet_v3_large) {
  def.help = "Lite R-ASPP on MobileNet version 3: a class of each pixel, torchvision's names";
  def.schema = segmentation_schema();
  def.outputs = {"pixel_logits"};
  def.build = build_lraspp;
}

}  // namespace fleet
