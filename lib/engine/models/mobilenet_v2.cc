// mobilenet_v2: Sandler et al. 2018: inverted residuals with linear bottlenecks; torchvision's
// names and initialisation.
#include "models/model.h"
#include "models/network.h"

namespace fleet {
namespace {

struct InvertedStage {
  int64_t expand, channels;
  int repeats;
  int64_t stride;
};
constexpr InvertedStage kInvertedStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2},
                                             {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2},
                                             {6, 320, 1, 1}};

// torchvision's Conv2dNormActivation: NAME.0, NAME.1, and relu6.
VarId conv_bn_relu6(Network& network, VarId x, const std::string& name, const Conv2d& layer) {
  x = network.batch_norm(name + ".1", network.conv2d(name + ".0", x, layer));
  return network.activation("relu6", x);
}

VarId inverted_residual(Network& network, VarId x, const std::string& name, int64_t expand,
                        int64_t channels, int64_t stride) {
  const int64_t inputs = network.shape(x)[1], hidden = inputs * expand;
  int number = 0;
  const auto next = [&] { return name + ".conv." + std::to_string(number++); };
  VarId y = x;
  if (expand != 1) y = conv_bn_relu6(network, y, next(), {.channels = hidden, .kernel = 1});
  y = conv_bn_relu6(
      network, y, next(),
      {.channels = hidden, .kernel = 3, .stride = stride, .padding = 1, .groups = hidden});
  y = network.conv2d(next(), y, {.channels = channels, .kernel = 1});
  y = network.batch_norm(next(), y);
  return stride == 1 && inputs == channels ? network.add(x, y) : y;
}

}  // namespace

FLEET_MODEL(mobilenet_v2) {
  def.help = "MobileNet version 2, torchvision's names";
  def.schema = batch_norm_model_schema()
                   .number("width", 1, 0.05, 8, "factor for the channels of every layer")
                   .number("dropout", 0.2, 0, 0.99, "dropout rate of the last layer's inputs");
  def.build = image_classifier([](Network& network, VarId image, const Settings& settings) {
    const double width = settings.number("width");
    const auto wide = [&](int64_t channels) {
      return round_channels(static_cast<double>(channels) * width);
    };
    VarId x = conv_bn_relu6(network, image, "features.0",
                            {.channels = wide(32), .kernel = 3, .stride = 2, .padding = 1});
    network.block("features.0", x);
    int number = 1;
    for (const InvertedStage& stage : kInvertedStages) {
      for (int i = 0; i < stage.repeats; ++i) {
        const std::string name = "features." + std::to_string(number++);
        x = inverted_residual(network, x, name, stage.expand, wide(stage.channels),
                              i == 0 ? stage.stride : 1);
        network.block(name, x);
      }
    }
    const int64_t last = round_channels(1280 * std::max(1.0, width));
    x = conv_bn_relu6(network, x, "features." + std::to_string(number),
                      {.channels = last, .kernel = 1});
    network.tail_of_block(x);
    x = network.dropout(network.flatten(network.global_pool(x)), settings.number("dropout"));
    return network.linear(
        "classifier.1", x,
        {.features = settings.integer("num_classes"), .init = WeightInit::kNormal001});
  });
}

}  // namespace fleet
