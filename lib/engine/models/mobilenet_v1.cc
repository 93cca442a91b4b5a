// mobilenet_v1: Howard et al. 2017: depthwise 3x3 and pointwise 1x1 convolutions. torchvision has
// no version 1; weights are initialised as in its version 2.
#include <algorithm>
#include <cmath>

#include "models/model.h"

namespace fleet {
namespace {

struct Separable {
  int64_t channels, stride;
};
constexpr Separable kBlocks[] = {{64, 1},  {128, 2},  {128, 1}, {256, 2}, {256, 1},
                                 {512, 2}, {512, 1},  {512, 1}, {512, 1}, {512, 1},
                                 {512, 1}, {1024, 2}, {1024, 1}};

VarId conv_bn_relu(Network& network, VarId x, const std::string& conv, const std::string& bn,
                   const Conv2d& layer) {
  return network.relu(network.batch_norm(bn, network.conv2d(conv, x, layer)));
}

}  // namespace

FLEET_MODEL(mobilenet_v1) {
  def.help = "MobileNet version 1";
  def.schema = batch_norm_model_schema()
                   .number("width", 1, 0.05, 8, "factor for the channels of every layer")
                   .number("dropout", 0, 0, 0.99, "dropout rate of the last layer's inputs");
  def.build = image_classifier([](Network& network, VarId image, const Settings& settings) {
    const auto wide = [&](int64_t channels) {
      const double scaled = static_cast<double>(channels) * settings.number("width");
      return std::max<int64_t>(1, static_cast<int64_t>(std::lround(scaled)));
    };
    VarId x = conv_bn_relu(network, image, "conv1", "bn1",
                           {.channels = wide(32), .kernel = 3, .stride = 2, .padding = 1});
    network.block("stem", x);
    int number = 0;
    for (const Separable& block : kBlocks) {
      const std::string base = "blocks." + std::to_string(number++), name = base + ".";
      const int64_t inputs = network.shape(x)[1];
      x = conv_bn_relu(network, x, name + "depthwise", name + "bn1",
                       {.channels = inputs,
                        .kernel = 3,
                        .stride = block.stride,
                        .padding = 1,
                        .groups = inputs});
      x = conv_bn_relu(network, x, name + "pointwise", name + "bn2",
                       {.channels = wide(block.channels), .kernel = 1});
      network.block(base, x);
    }
    x = network.dropout(network.flatten(network.global_pool(x)), settings.number("dropout"));
    return network.linear(
        "fc", x, {.features = settings.integer("num_classes"), .init = WeightInit::kNormal001});
  });
}

}  // namespace fleet
